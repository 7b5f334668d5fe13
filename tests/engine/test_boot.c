/* Properties of engine/boot.c: what cannot start says why with its own exit code; what starts has planned all it holds.
 */
#include "tests/engine/booted.h"

#include "engine/footprint.h"
#include "engine/start.h"

#define SMALL                                                                                                          \
    "--context-length 512 --max-source-pixels 64Ki --large-bodies 1 --large-body-bytes 64Ki --device-memory 80Mi "     \
    "--threads 2 "

/* Boots in a child up to the seal and leaves by `probe`'s answer; returns the exit code. */
static int boot_with(const char *flags, int (*probe)(void))
{
    static char line[1024];
    char *words[BOOTED_FLAGS_MAX] = {"ashlar", "serve"}, *environment[] = {"SGLANG_VLM_CACHE_SIZE_MB=1", NULL};
    int count = 2, status = 0;

    (void)snprintf(line, sizeof line, "%s", flags);
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        words[count++] = word;
    }
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        static struct options options;
        struct options_error error;
        (void)!freopen("/dev/null", "w", stderr);
        log_set_level(LOG_ERROR);
        if (!options_parse(&options, count, words, environment, &error)) {
            _exit(START_USAGE);
        }
        boot_plan(&booted, &options);
        if (booted.plan.outcome != BUDGET_FITS) {
            _exit(START_NO_MEMORY);
        }
        boot_carve(&booted);
        boot_load(&booted);
        (void)boot_seal(&booted);
        int answer = probe();
        seal_end();
        boot_stop(&booted);
        _exit(answer);
    }
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int probe_nothing(void)
{
    return 0;
}

static int probe_footprint(void)
{
    struct footprint footprint;
#ifdef ASHLAR_SANITIZED /* their own memory is in the way */
    return footprint_read(&footprint) ? 0 : 1;
#else
    return footprint_read(&footprint) && footprint_keeps(&footprint) ? 0 : 1;
#endif
}

static int probe_float32(void)
{
    return booted.subject.dtype == MODEL_F32 ? 0 : 1;
}

static int probe_idle(void)
{
    for (int i = 0; i < POOL_COUNT; i++) {
        if (pools_excess((enum pool)i) != 0) {
            return 1;
        }
    }
    bool has_none_left =
        pools_used(POOL_WEIGHTS) == 1 && pools_used(POOL_REQUEST) == 1 && pools_used(POOL_KV_PAGE) == 1;
    bool knows_ids = booted.engine->parts.id_limit > 1000 && booted.engine->parts.id_limit <= booted.checkpoint.vocab;
    return has_none_left && knows_ids && domain_file_map_count() == 0 ? 0 : 1;
}

static void what_cannot_start_has_its_own_exit_code(void)
{
    CU_ASSERT_EQUAL(boot_with(SMALL, probe_nothing), START_USAGE); /* no model */
    CU_ASSERT_EQUAL(boot_with("--model-path demo/none " SMALL, probe_nothing), START_BAD_MODEL);
    CU_ASSERT_EQUAL(boot_with("--model-path demo/eval " SMALL, probe_nothing), START_BAD_MODEL);
    CU_ASSERT_EQUAL(boot_with("--model-path demo/model --device-memory 20Mi", probe_nothing), START_NO_MEMORY);
    CU_ASSERT_EQUAL(boot_with("--model-path demo/model --tokenizer-path demo/eval " SMALL, probe_nothing),
                    START_BAD_MODEL);
    CU_ASSERT_EQUAL(boot_with("--model-path demo/model --context-length 100000", probe_nothing), START_USAGE);
}

static void resident_memory_is_the_plan(void)
{
    CU_ASSERT_EQUAL(boot_with("--model-path demo/model " SMALL, probe_footprint), 0);
    CU_ASSERT_EQUAL(boot_with("--model-path demo/model --load-format dummy " SMALL, probe_footprint), 0);
}

static void flags_reach_the_model(void)
{
    CU_ASSERT_EQUAL(boot_with("--model-path demo/model --dtype float32 " SMALL, probe_float32), 0);
    CU_ASSERT_EQUAL(boot_with("--model-path demo/model " SMALL, probe_float32), 1);
}

static void a_sealed_engine_is_idle_and_has_let_go_of_all_files(void)
{
    CU_ASSERT_EQUAL(boot_with("--model-path demo/model " SMALL, probe_idle), 0);
    CU_ASSERT_EQUAL(
        boot_with("--model-path demo/model --max-running-requests 1 --chunked-prefill-size 1 " SMALL, probe_idle), 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(what_cannot_start_has_its_own_exit_code),
        CASE(resident_memory_is_the_plan),
        CASE(flags_reach_the_model),
        CASE(a_sealed_engine_is_idle_and_has_let_go_of_all_files),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/boot", cases, NULL);
}
