/* Properties of engine/plan_solve.c: the default of running requests gives way, a wish does not; advice is true. */
#include "engine/plan_solve.h"
#include "config.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct options options;
static struct options_error error;
static struct plan plan;

/* A model whose pools grow with the limits as a real one's do. */
static void measure(const void *context, const struct pool_limits *limits, struct pool_sizes *sizes)
{
    (void)context;
    *sizes = (struct pool_sizes){
        .weights_bytes = 20 << 20,
        .kv_page_bytes = 16 * 4096,
        .mm_page_bytes = 64 * 512,
        .pixels_bytes = 3ull * limits->picture_pixels,
        .act_text_bytes = 8192ull * limits->step_tokens,
        .act_vision_bytes = 4096ull * limits->picture_tokens,
        .logits_bytes = 40000ull * limits->running_requests,
        .op_workspace_bytes = 65536,
        .step_tables_bytes = 64ull * limits->step_tokens,
        .request_bytes = 20000,
        .kv_meta_bytes = 16,
        .prefix_bytes = 64,
        .feature_bytes = 96,
        .conn_bytes = 40000,
        .intake_scratch_bytes = 1 << 20,
        .tokenizer_bytes = 2 << 20,
        .image_rgb_bytes = 3 * limits->source_pixels,
        .image_work_bytes = 6 * limits->source_pixels,
        .sample_work_bytes = 20000,
        .engine_bytes = 4096,
        .queue_bytes = 8192,
    };
}

static struct plan_source source = {
    .options = &options,
    .facts = {.context_max_tokens = 4096,
              .picture_tokens_max = 1024,
              .token_pixels = 784,
              .mm_page_bytes = 64 * 512,
              .cpus = 2},
    .measure = measure,
    .available_bytes = (uint64_t)8 << 30,
    .is_one_memory = true,
    .tensor_count = 100,
    .tensor_bytes = 20 << 20,
};

static bool solve(const char *flags)
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
    return plan_solve(&plan, &source, &error);
}

static void plenty_gives_the_defaults(void)
{
    CU_ASSERT(solve(""));
    CU_ASSERT(plan.outcome == BUDGET_FITS);
    CU_ASSERT(plan.limits.running_requests == PLAN_RUNNING_DEFAULT);
    CU_ASSERT(plan.budget.plan.kv_pages == plan.limits.kv_pages_cap);
    CU_ASSERT(plan.budget.limit_bytes == (uint64_t)((double)source.available_bytes * 0.85));
    CU_ASSERT(plan.budget.plan.total_bytes <= plan.budget.limit_bytes);
}

static void the_same_flags_give_the_same_plan(void)
{
    static struct plan first;

    CU_ASSERT(solve("--device-memory 1536Mi"));
    first = plan;
    CU_ASSERT(solve("--device-memory 1536Mi"));
    CU_ASSERT(memcmp(&first, &plan, sizeof plan) == 0);
}

static void the_default_is_lowered_until_one_context_fits(void)
{
    CU_ASSERT(solve("--device-memory 4Gi --max-running-requests 1"));
    uint64_t one = plan.budget.least_bytes;
    CU_ASSERT(solve("--device-memory 4Gi --max-running-requests 6"));
    uint64_t six = plan.budget.least_bytes;
    char flags[64];
    (void)snprintf(flags, sizeof flags, "--device-memory %llu", (unsigned long long)six);
    CU_ASSERT(solve(flags));
    CU_ASSERT(plan.outcome == BUDGET_FITS && plan.limits.running_requests == 6);
    CU_ASSERT(plan.limits.queued_requests == 24);
    (void)snprintf(flags, sizeof flags, "--device-memory %llu", (unsigned long long)one);
    CU_ASSERT(solve(flags));
    CU_ASSERT(plan.outcome == BUDGET_FITS && plan.limits.running_requests == 1);
    (void)snprintf(flags, sizeof flags, "--device-memory %llu", (unsigned long long)one - 1);
    CU_ASSERT(solve(flags));
    CU_ASSERT(plan.outcome == BUDGET_TOO_SMALL && plan.limits.running_requests == 1);
    CU_ASSERT(plan.budget.missing_bytes == 1);
}

static void a_wish_is_not_lowered(void)
{
    CU_ASSERT(solve("--device-memory 700Mi --max-running-requests 64"));
    CU_ASSERT(plan.outcome == BUDGET_TOO_SMALL);
    CU_ASSERT(plan.limits.running_requests == 64);
    CU_ASSERT(plan.budget.missing_bytes > 0);
}

static void advice_is_true_and_sorted(void)
{
    CU_ASSERT(solve("--device-memory 100Mi --max-running-requests 64"));
    uint64_t needed = plan.budget.least_bytes;
    CU_ASSERT_FATAL(plan.advice_count == PLAN_ADVICE_MAX);
    struct plan_advice advice[PLAN_ADVICE_MAX];
    memcpy(advice, plan.advice, sizeof advice);
    for (int i = 0; i < PLAN_ADVICE_MAX; i++) {
        CU_ASSERT(advice[i].freed_bytes > 0);
        CU_ASSERT(i == 0 || advice[i].freed_bytes <= advice[i - 1].freed_bytes);
        if (strncmp(advice[i].flag, "--", 2) == 0 && advice[i].value[0] != '\'') {
            char flags[256];
            (void)snprintf(flags, sizeof flags, "--device-memory 100Mi --max-running-requests 64 %s %s", advice[i].flag,
                           advice[i].value);
            CU_ASSERT(solve(flags));
            CU_ASSERT(plan.budget.least_bytes == needed - advice[i].freed_bytes);
        }
    }
    /* Here the decoder's memory for a source picture of 64 Mi pixels outweighs all else. */
    CU_ASSERT(strcmp(advice[0].flag, "--max-source-pixels") == 0);
}

static void contradictions_are_usage_errors(void)
{
    CU_ASSERT(!solve("--context-length 5000"));
    CU_ASSERT(strstr(error.text, "--context-length") != NULL);
}

static void overflow_is_told(void)
{
    source.facts.picture_tokens_max = 0;
    CU_ASSERT(solve("--large-body-bytes 4294967295 --large-bodies 4096 --max-running-requests 4096"));
    CU_ASSERT(plan.outcome == BUDGET_TOO_SMALL); /* large, but it is a number */
    CU_ASSERT(plan.advice_count > 0);
    source.facts.picture_tokens_max = 1024;
}

static void every_fraction_gives_a_plan_or_a_refusal(void) /* g04 */
{
    static const char *const fractions[] = {"0.01", "0.1", "0.5", "0.85", "0.99", "1.0"};
    uint32_t last_pages = 0;

    for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
        char flags[64];
        (void)snprintf(flags, sizeof flags, "--mem-fraction-static %s", fractions[i]);
        CU_ASSERT(solve(flags));
        CU_ASSERT(plan.outcome == BUDGET_FITS || plan.outcome == BUDGET_TOO_SMALL);
        if (plan.outcome == BUDGET_FITS) {
            CU_ASSERT(plan.budget.plan.kv_pages >= last_pages);
            last_pages = plan.budget.plan.kv_pages;
        }
    }
    CU_ASSERT(last_pages > 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(plenty_gives_the_defaults),
        CASE(the_same_flags_give_the_same_plan),
        CASE(the_default_is_lowered_until_one_context_fits),
        CASE(a_wish_is_not_lowered),
        CASE(advice_is_true_and_sorted),
        CASE(contradictions_are_usage_errors),
        CASE(overflow_is_told),
        CASE(every_fraction_gives_a_plan_or_a_refusal),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/plan_solve", cases, NULL);
}
