/* Properties of engine/engine_tick.c: what a round does with tokens that end an answer, and with logits that are none.
 */
#include "tests/engine/booted.h"

#include <math.h>

#define DEMO                                                                                                           \
    "--model-path demo/model --context-length 512 --max-source-pixels 64Ki --large-bodies 1 --large-body-bytes 64Ki "  \
    "--device-memory 60Mi --random-seed 5 --threads 1 SGLANG_VLM_CACHE_SIZE_MB=1"

static struct booted_run *run;

static void ask(uint32_t index, const char *text, const char *rest)
{
    char *body = harness_memory(1024);
    (void)snprintf(body, 1024, "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],%s}", text, rest);
    run->asks[index] = (struct booted_ask){.body = body};
    run->ask_count = index + 1;
    run->at_once = 4;
}

static void answers_end_by_token_by_string_and_by_length(void)
{
    ask(0, "Hello", "\"temperature\":0");
    ask(1, "Hello", "\"temperature\":0,\"max_tokens\":3");
    ask(2, "Hello", "\"temperature\":0,\"stop\":\"picture\"");
    ask(3, "Hello", "\"temperature\":0,\"min_tokens\":40,\"max_tokens\":50");
    CU_ASSERT_FATAL(booted_answer(run, DEMO, NULL));
    CU_ASSERT(run->asks[0].finish == FINISH_STOP && run->asks[0].answer_tokens > 5);
    CU_ASSERT(run->asks[1].finish == FINISH_LENGTH && run->asks[1].answer_tokens == 3);
    CU_ASSERT(run->asks[2].finish == FINISH_STOP && run->asks[2].answer_tokens < run->asks[0].answer_tokens);
    CU_ASSERT(run->asks[3].answer_tokens >= 40);
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(memcmp(run->asks[1].tokens, run->asks[i].tokens, 3 * sizeof(int32_t)), 0);
    }
    CU_ASSERT_EQUAL(run->excess, 0);
}

static void logits_that_are_no_numbers_end_their_request_alone(void)
{
    ask(0, "Hello", "\"temperature\":0");
    ask(1, "Hello there", "\"temperature\":0");
    ask(2, "Hello", "\"temperature\":0.7,\"seed\":3,\"max_tokens\":30");
    booted_poison = 1;
    CU_ASSERT_FATAL(booted_answer(run, DEMO, NULL));
    booted_poison = UINT32_MAX;
    CU_ASSERT(run->asks[0].err == ERR_OK && run->asks[2].err == ERR_OK);
    CU_ASSERT(run->asks[1].err == ERR_INTERNAL && run->asks[1].finish == FINISH_ABORT);
    CU_ASSERT_EQUAL(run->excess, 0);
}

static void equal_seeds_give_equal_answers_and_others_others(void)
{
    ask(0, "Tell me", "\"temperature\":1,\"seed\":1,\"max_tokens\":60,\"ignore_eos\":true");
    ask(1, "Tell me", "\"temperature\":1,\"seed\":1,\"max_tokens\":60,\"ignore_eos\":true");
    ask(2, "Tell me", "\"temperature\":1,\"seed\":2,\"max_tokens\":60,\"ignore_eos\":true");
    CU_ASSERT_FATAL(booted_answer(run, DEMO, NULL));
    CU_ASSERT_EQUAL(memcmp(run->asks[0].tokens, run->asks[1].tokens, 60 * sizeof(int32_t)), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(run->asks[0].tokens, run->asks[2].tokens, 60 * sizeof(int32_t)), 0);
}

static void a_refused_body_reaches_conn_as_done(void)
{
    ask(0, "Hello", "\"temperature\":-1");
    ask(1, "Hello", "\"n\":{}");
    CU_ASSERT_FATAL(booted_answer(run, DEMO, NULL));
    CU_ASSERT(run->asks[0].err == ERR_BAD_FIELD && run->asks[0].is_done);
    CU_ASSERT(run->asks[1].err != ERR_OK && run->asks[1].is_done);
    CU_ASSERT_EQUAL(run->excess, 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(answers_end_by_token_by_string_and_by_length),
        CASE(logits_that_are_no_numbers_end_their_request_alone),
        CASE(equal_seeds_give_equal_answers_and_others_others),
        CASE(a_refused_body_reaches_conn_as_done),
        {NULL, NULL},
    };
    run = booted_open();
    return harness_run(argc, argv, "engine/engine_tick", cases, NULL);
}
