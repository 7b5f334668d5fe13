/* Properties of engine/answer.c: why an answer ends, what of it is shown, in which order it is published. */
#include "engine/answer.h"
#include "tests/text/open_tokenizer.h"

enum { EOS = 1000, PROMPT = 3 };

static struct text_room room;
static struct request request;
static struct answer answer;
static int32_t tokens[256];
static const int32_t eos_ids[] = {EOS};

static void open_request(uint32_t max_new_tokens)
{
    request_open(&request, 0, 1, 0, 0);
    request.tokens = tokens;
    request.prompt_tokens = PROMPT;
    request.max_new_tokens = max_new_tokens;
    request.skip_special_tokens = true;
}

static void add_stop_string(const char *text)
{
    struct stop_string *stop = &request.stop_strings[request.stop_string_count++];
    stop->bytes = (uint16_t)strlen(text);
    memcpy(stop->text, text, stop->bytes);
}

/* Says the text byte by byte, then `last` (-1: nothing). Returns why it ended; *count: tokens said. */
static enum finish_reason say(const char *text, int32_t last, uint32_t *count)
{
    enum finish_reason finish = FINISH_NONE;
    *count = 0;
    answer_open(&answer, &request, eos_ids, 1);
    for (; *text != '\0' && finish == FINISH_NONE; text++) {
        tokens[PROMPT + *count] = room.tokenizer.vocab.byte_ids[(unsigned char)*text];
        finish = answer_publish(&answer, &request, &room.tokenizer, ++*count);
    }
    if (finish == FINISH_NONE && last >= 0) {
        tokens[PROMPT + *count] = last;
        finish = answer_publish(&answer, &request, &room.tokenizer, ++*count);
    }
    CU_ASSERT_EQUAL(atomic_load(&request.finish), finish);
    CU_ASSERT_EQUAL(atomic_load(&request.answer_tokens), *count);
    return finish;
}

static void a_stop_token_ends_it_and_is_not_shown(void)
{
    uint32_t count;
    open_request(50);
    CU_ASSERT_EQUAL(say("hello", EOS, &count), FINISH_STOP);
    CU_ASSERT(request.matched_stop_id == EOS && request.matched_stop_string == -1);
    CU_ASSERT(atomic_load(&request.answer_bytes) == 5 && count == 6);
}

static void the_requests_own_stop_ids_count_too(void)
{
    uint32_t count;
    open_request(50);
    request.sampling.stop_id_count = 1;
    request.sampling.stop_ids[0] = room.tokenizer.vocab.byte_ids['x'];
    CU_ASSERT_EQUAL(say("abxcd", -1, &count), FINISH_STOP);
    CU_ASSERT(count == 3 && atomic_load(&request.answer_bytes) == 2);
    CU_ASSERT_EQUAL(request.matched_stop_id, room.tokenizer.vocab.byte_ids['x']);
    open_request(50);
    request.sampling.stop_id_count = 1;
    request.sampling.stop_ids[0] = room.tokenizer.vocab.byte_ids['x'];
    request.no_stop_trim = true;
    CU_ASSERT_EQUAL(say("abxcd", -1, &count), FINISH_STOP);
    CU_ASSERT_EQUAL(atomic_load(&request.answer_bytes), 3);
}

static void ignore_eos_goes_on_to_the_length(void)
{
    uint32_t count;
    open_request(4);
    request.sampling.ignore_eos = true;
    request.sampling.stop_id_count = 1;
    request.sampling.stop_ids[0] = room.tokenizer.vocab.byte_ids['b'];
    CU_ASSERT_EQUAL(say("abcdef", EOS, &count), FINISH_LENGTH);
    CU_ASSERT(count == 4 && request.matched_stop_id == -1);
}

static void a_stop_string_is_held_back_and_cut_off(void)
{
    uint32_t count;
    open_request(50);
    add_stop_string("END");
    CU_ASSERT_EQUAL(say("so EN", -1, &count), FINISH_NONE);
    CU_ASSERT_EQUAL(atomic_load(&request.answer_bytes), 3); /* "EN" may become the stop string */
    open_request(50);
    add_stop_string("zz");
    add_stop_string("END");
    CU_ASSERT_EQUAL(say("so END and more", -1, &count), FINISH_STOP);
    CU_ASSERT(count == 6 && atomic_load(&request.answer_bytes) == 3);
    CU_ASSERT(request.matched_stop_string == 1 && request.matched_stop_id == -1);
}

static void at_the_length_everything_is_shown(void)
{
    uint32_t count;
    open_request(5);
    add_stop_string("END");
    CU_ASSERT_EQUAL(say("so EN", -1, &count), FINISH_LENGTH);
    CU_ASSERT_EQUAL(atomic_load(&request.answer_bytes), 5);
}

static void stop_ids_are_masked_before_min_tokens(void)
{
    const int32_t *ids;
    open_request(50);
    request.sampling.min_tokens = 3;
    request.sampling.stop_id_count = 1;
    request.sampling.stop_ids[0] = 77;
    answer_open(&answer, &request, eos_ids, 1);
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(answer_masked(&answer, &request, i, &ids), 2);
        CU_ASSERT(ids[0] == EOS && ids[1] == 77);
    }
    CU_ASSERT_EQUAL(answer_masked(&answer, &request, 3, &ids), 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_stop_token_ends_it_and_is_not_shown),
        CASE(the_requests_own_stop_ids_count_too),
        CASE(ignore_eos_goes_on_to_the_length),
        CASE(a_stop_string_is_held_back_and_cut_off),
        CASE(at_the_length_everything_is_shown),
        CASE(stop_ids_are_masked_before_min_tokens),
        {NULL, NULL},
    };
    if (!open_folder(&room, 1088, "tests/data/fixtures/tokenizer-small", false, NULL)) {
        return 2;
    }
    return harness_run(argc, argv, "engine/answer", cases, NULL);
}
