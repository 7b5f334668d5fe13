/* Properties of engine/warm.c: it fits the smallest plans, leaves every pool as it was, and changes no answer. */
#include "engine/warm.h"
#include "tests/engine/booted.h"

#define LEAST                                                                                                          \
    "--model-path demo/model --max-source-pixels 64Ki --large-bodies 1 --large-body-bytes 64Ki --device-memory 60Mi "  \
    "--threads 2 SGLANG_VLM_CACHE_SIZE_MB=0 "

static struct booted_run *run;

/* Warms once more in the middle of start-up, and looks at the pools. */
static int warm_again(const char *flags)
{
    static char line[1024];
    char *words[BOOTED_FLAGS_MAX] = {"ashlar", "serve"}, *environment[] = {"SGLANG_VLM_CACHE_SIZE_MB=0", NULL};
    int count = 2, status = 0;
    (void)snprintf(line, sizeof line, "%s", flags);
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        if (word[0] != 'S') {
            words[count++] = word;
        }
    }
    pid_t child = fork();
    if (child == 0) {
        static struct options options;
        struct options_error error;
        log_set_level(LOG_ERROR);
        if (!options_parse(&options, count, words, environment, &error)) {
            _exit(2);
        }
        boot_plan(&booted, &options);
        boot_carve(&booted);
        boot_load(&booted);
        uint32_t before = pools_used(POOL_PIXELS) + pools_used(POOL_KV_PAGE) + pools_used(POOL_MM_PAGE);
        pools_put(POOL_LOGITS, pools_held(POOL_LOGITS, 0)); /* the engine's; nothing runs yet */
        warm_model(booted.model, &booted.checkpoint, &booted.plan.limits);
        uint32_t after = pools_used(POOL_PIXELS) + pools_used(POOL_KV_PAGE) + pools_used(POOL_MM_PAGE);
        _exit(before == after && pools_used(POOL_LOGITS) == 0 ? 0 : 1);
    }
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void it_takes_nothing_and_fits_the_least_plan(void)
{
    CU_ASSERT_EQUAL(warm_again(LEAST "--context-length 512"), 0);
    CU_ASSERT_EQUAL(warm_again(LEAST "--context-length 16 --max-running-requests 1 --chunked-prefill-size 1"), 0);
    CU_ASSERT_EQUAL(warm_again(LEAST "--context-length 33 --max-running-requests 4 --chunked-prefill-size 33"), 0);
}

static void the_least_plan_answers(void)
{
    run = booted_open();
    run->ask_count = run->at_once = 1;
    run->asks[0].body = "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":4,\"temperature\":0}";
    CU_ASSERT(booted_answer(run, LEAST "--context-length 48 --max-running-requests 1 --chunked-prefill-size 1", NULL));
    CU_ASSERT(run->asks[0].err == ERR_OK && run->asks[0].answer_tokens > 0);
    CU_ASSERT_EQUAL(run->excess, 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(it_takes_nothing_and_fits_the_least_plan),
        CASE(the_least_plan_answers),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/warm", cases, NULL);
}
