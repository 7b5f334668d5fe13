/* Properties of engine/plan_limits.c: the defaults are the documented ones, flags win, contradictions are refused by
 * name. */
#include "engine/plan_limits.h"
#include "config.h"
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

static struct options options;
static struct options_error error;
static struct pool_limits limits;

/* Qwen2.5-VL-7B on a machine with two CPUs. */
static const struct plan_facts facts = {
    .context_max_tokens = 128000,
    .picture_tokens_max = 16384,
    .token_pixels = 784,
    .mm_page_bytes = 458752,
    .cpus = 2,
};
static const struct plan_facts text_facts = {.context_max_tokens = 32768, .cpus = 200};

/* Limits for `flags` (single spaces between), at `running` requests. */
static bool derive(const char *flags, const struct plan_facts *model, uint32_t running)
{
    static char line[1024];
    static char program[] = "ashlar", model_flag[] = "--model=M";
    char *arguments[64] = {program, model_flag};
    int count = 2;

    (void)snprintf(line, sizeof line, "%s", flags);
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        arguments[count++] = word;
    }
    bool is_parsed = options_parse(&options, count, arguments, NULL, &error);
    CU_ASSERT_FATAL(is_parsed);
    return plan_limits_from_options(&options, model, running, &limits, &error);
}

static void defaults_are_the_documented_ones(void)
{
    CU_ASSERT_FATAL(derive("", &facts, PLAN_RUNNING_DEFAULT));
    CU_ASSERT(limits.context_tokens == 128000 && limits.context_pages == 8000);
    CU_ASSERT(limits.running_requests == 16 && limits.queued_requests == 64);
    CU_ASSERT(limits.chunk_tokens == 512 && limits.step_tokens == 528);
    CU_ASSERT(limits.connections == 320);
    CU_ASSERT(limits.large_bodies == 4 && limits.large_body_bytes == 33554432);
    CU_ASSERT(limits.small_body_bytes == 65536);
    CU_ASSERT(limits.source_pixels == 67108864);
    CU_ASSERT(limits.picture_tokens == 16384 && limits.picture_pages == 256);
    CU_ASSERT(limits.picture_pixels == 16384 * 784);
    CU_ASSERT(limits.feature_cache_pages == 100 * 1024 * 1024 / 458752);
    CU_ASSERT(limits.images_per_request == IMAGES_MAX);
    CU_ASSERT(limits.compute_threads == 2);
    CU_ASSERT(limits.kv_pages_cap == 2 * 16 * 8000 + 1);
    CU_ASSERT(limits.has_prefix_cache);
    CU_ASSERT(derive("", &facts, 1) && limits.queued_requests == 4 && limits.connections == 64);
}

static void flags_win(void)
{
    CU_ASSERT(
        derive("--context-length 4096 --max-queued-requests 0 --chunked-prefill-size 100 --threads 7", &facts, 3));
    CU_ASSERT(limits.context_tokens == 4096 && limits.queued_requests == 0);
    CU_ASSERT(limits.chunk_tokens == 100 && limits.step_tokens == 103);
    CU_ASSERT(limits.compute_threads == 7 && limits.stacks == 3 + 2 + 1 + 6);
    CU_ASSERT(limits.connections == 64);
    CU_ASSERT(derive("--chunked-prefill-size -1 --context-length 4096", &facts, 3) && limits.chunk_tokens == 4096);
    CU_ASSERT(derive("--chunked-prefill-size 8192 --context-length 4096", &facts, 3) && limits.chunk_tokens == 4096);
    CU_ASSERT(derive("--chunked-prefill-size -1 --context-length 4096 --max-prefill-tokens 300", &facts, 3));
    CU_ASSERT(limits.chunk_tokens == 300);
    CU_ASSERT(derive("--disable-radix-cache --context-length 4096", &facts, 3));
    CU_ASSERT(!limits.has_prefix_cache && limits.kv_pages_cap == 3 * 256 + 1);
    CU_ASSERT(derive("--max-connections 5", &facts, 3) && limits.connections == 5);
}

static void a_longer_context_than_the_models_is_refused_unless_allowed(void)
{
    char program[] = "ashlar", model[] = "--model=M", flag[] = "--context-length=200000";
    char allow[] = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1";
    char *arguments[] = {program, model, flag}, *environment[] = {allow, NULL};

    CU_ASSERT(!derive("--context-length 128001", &facts, 1));
    CU_ASSERT(strstr(error.text, "--context-length: 128001") != NULL && strstr(error.text, "128000") != NULL);
    CU_ASSERT(derive("--context-length 128000", &facts, 1));
    CU_ASSERT(options_parse(&options, 3, arguments, environment, &error));
    CU_ASSERT(plan_limits_from_options(&options, &facts, 1, &limits, &error) && limits.context_tokens == 200000);
}

static void total_tokens_cap_pages_and_context(void)
{
    CU_ASSERT(derive("--max-total-tokens 1000 --context-length 4096", &facts, 4));
    CU_ASSERT(limits.context_tokens == 992 && limits.context_pages == 62);
    CU_ASSERT(limits.kv_pages_cap == 63);
    CU_ASSERT(derive("--max-total-tokens 1000000 --context-length 4096", &facts, 4));
    CU_ASSERT(limits.context_tokens == 4096 && limits.kv_pages_cap == 2 * 4 * 256 + 1);
}

static void pictures_never_exceed_the_context(void)
{
    CU_ASSERT(derive("--context-length 1000", &facts, 4));
    CU_ASSERT(limits.picture_tokens == 1000 && limits.picture_pages == 16);
}

static void a_text_model_has_no_picture_memory(void)
{
    CU_ASSERT(derive("", &text_facts, 4));
    CU_ASSERT(limits.picture_tokens == 0 && limits.picture_pages == 0 && limits.picture_pixels == 0);
    CU_ASSERT(limits.picture_workers == 0 && limits.feature_cache_pages == 0 && limits.images_per_request == 0);
    CU_ASSERT(limits.compute_threads == THREADS_MAX);
}

static void images_a_request_are_limited_by_json(void)
{
    CU_ASSERT(derive("--limit-mm-data-per-request={\"image\":3}", &facts, 1) && limits.images_per_request == 3);
    CU_ASSERT(derive("--limit-mm-data-per-request={\"video\":9,\"image\":0}", &facts, 1));
    CU_ASSERT(limits.images_per_request == 0);
    CU_ASSERT(derive("--limit-mm-data-per-request={}", &facts, 1) && limits.images_per_request == IMAGES_MAX);
    static const char *const bad[] = {
        "{\"image\":-1}", "{\"image\":65}", "{\"image\":1.5}",    "{\"image\":\"3\"}", "[3]", "3",
        "{\"image\":3",   "{\"images\":3}", "{\"image\":3}extra", "{\"image\":{}}",    "x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char flag[128];
        (void)snprintf(flag, sizeof flag, "--limit-mm-data-per-request=%s", bad[i]);
        CU_ASSERT(!derive(flag, &facts, 1));
        CU_ASSERT(strstr(error.text, "--limit-mm-data-per-request") != NULL);
    }
}

static void the_limit_is_a_fraction_of_what_is_there(void)
{
    CU_ASSERT(derive("", &facts, 1));
    CU_ASSERT(plan_limit_bytes(&options, 1000000) == 850000);
    CU_ASSERT(derive("--mem-fraction-static 0.5", &facts, 1));
    CU_ASSERT(plan_limit_bytes(&options, 1000000) == 500000);
    CU_ASSERT(derive("--device-memory 2Gi", &facts, 1));
    CU_ASSERT(plan_limit_bytes(&options, 1000000) == 2147483648u);
    CU_ASSERT(derive("--device-memory 143771Mi --mem-fraction-static 0.85", &facts, 1));
    CU_ASSERT(plan_limit_bytes(&options, 1000000) == 128141597081u);
}

/* With every count flag at its highest, no sum in the table of pools may pass 32 bits. */
static void the_largest_flags_stay_countable(void)
{
    CU_ASSERT(
        derive("--max-running-requests 4096 --max-queued-requests 65536 --max-connections 65536 --large-bodies 4096",
               &facts, 4096));
    CU_ASSERT(limits.kv_pages_cap <= 1u << 28);
    CU_ASSERT(limits.connections == 65536 && limits.step_tokens == 512 + 4096);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(defaults_are_the_documented_ones),
        CASE(flags_win),
        CASE(a_longer_context_than_the_models_is_refused_unless_allowed),
        CASE(total_tokens_cap_pages_and_context),
        CASE(pictures_never_exceed_the_context),
        CASE(a_text_model_has_no_picture_memory),
        CASE(images_a_request_are_limited_by_json),
        CASE(the_limit_is_a_fraction_of_what_is_there),
        CASE(the_largest_flags_stay_countable),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/plan_limits", cases, NULL);
}
