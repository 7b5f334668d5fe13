/* plan_solve: from flags and a model to the whole memory plan, or to what it lacks. */
#include "engine/plan_solve.h"

#include "engine/log.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* One try with a number of running requests. */
static bool try_running(struct plan *plan, const struct options *options, const struct plan_facts *facts,
                        uint32_t running_requests, struct options_error *error)
{
    const struct plan_source *source = &plan->source;

    if (!plan_limits_from_options(options, facts, running_requests, &plan->limits, error)) {
        return false;
    }
    memset(&plan->sizes, 0, sizeof plan->sizes);
    source->measure(source->context, &plan->limits, &plan->sizes);
    plan->outcome = budget_solve(&plan->sizes, &plan->limits, plan_limit_bytes(options, source->available_bytes),
                                 source->is_one_memory, &plan->budget);
    assert(plan->budget.plan.kv_pages <= plan->limits.kv_pages_cap || plan->outcome != BUDGET_FITS);
    return true;
}

static bool solve(struct plan *plan, const struct options *options, const struct plan_facts *facts,
                  struct options_error *error)
{
    bool is_asked = options->is_given[OPTION_max_running_requests];
    uint32_t running_requests = is_asked ? (uint32_t)options->max_running_requests : PLAN_RUNNING_DEFAULT;

    assert(running_requests > 0);
    for (; running_requests > 0; running_requests--) {
        if (!try_running(plan, options, facts, running_requests, error)) {
            return false;
        }
        if (plan->outcome == BUDGET_FITS || is_asked) {
            break;
        }
    }
    return true;
}

/* Advice: what a flag frees is found by solving again with the flag lowered. */

enum { NO_FIELD = -1, SOURCE_PIXELS_LEAST = 1 << 20, BODY_BYTES_LEAST = 1 << 20, CHUNK_TOKENS_LEAST = 64 };

/* One flag and the value that is tried for it. */
struct trial {
    enum option option;
    int64_t field; /* offset in struct options, or NO_FIELD: the picture's resolution, which is a fact */
    int64_t value;
};

static int64_t at_least(int64_t value, int64_t least)
{
    return value > least ? value : least;
}

/* Lowers one flag. False if the model has no such need. */
static bool apply(const struct trial *trial, struct options *options, struct plan_facts *facts)
{
    options->is_given[trial->option] = true;
    if (trial->field != NO_FIELD) {
        assert((size_t)trial->field < sizeof *options);
        memcpy((char *)options + trial->field, &trial->value, sizeof trial->value);
        return true;
    }
    if (facts->token_pixels == 0 || trial->value < (int64_t)facts->token_pixels) {
        return false;
    }
    facts->picture_tokens_max = (uint32_t)(trial->value / (int64_t)facts->token_pixels);
    return true;
}

/* Puts advice in its place among the best, the one that frees most first. */
static void keep_advice(struct plan *plan, const struct plan_advice *advice)
{
    uint32_t at = plan->advice_count;

    assert(at <= PLAN_ADVICE_MAX);
    while (at > 0 && plan->advice[at - 1].freed_bytes < advice->freed_bytes) {
        at--;
    }
    if (at == PLAN_ADVICE_MAX) {
        return;
    }
    uint32_t last = plan->advice_count < PLAN_ADVICE_MAX ? plan->advice_count : PLAN_ADVICE_MAX - 1;
    memmove(&plan->advice[at + 1], &plan->advice[at], (last - at) * sizeof plan->advice[0]);
    plan->advice[at] = *advice;
    plan->advice_count = last + 1;
}

/* Solves again with one flag lowered; keeps what it would free of the smallest start. */
static void try_trial(struct plan *plan, const struct trial *trial)
{
    static struct plan other; /* start-up has one thread, and a plan is large for a stack */
    struct options options = *plan->source.options;
    struct plan_facts facts = plan->source.facts;
    struct options_error ignored;
    struct plan_advice advice = {.flag = options_name(trial->option)};

    if (!apply(trial, &options, &facts)) {
        return;
    }
    uint32_t running_requests = trial->option == OPTION_max_running_requests ? (uint32_t)options.max_running_requests
                                                                             : plan->limits.running_requests;
    other.source = plan->source;
    if (!try_running(&other, &options, &facts, running_requests, &ignored) || other.outcome == BUDGET_OVERFLOW ||
        other.budget.least_bytes >= plan->budget.least_bytes) {
        return;
    }
    (void)snprintf(advice.value, sizeof advice.value,
                   trial->field == NO_FIELD ? "'{\"image\":{\"max_pixels\":%lld}}'" : "%lld", (long long)trial->value);
    advice.freed_bytes = plan->budget.least_bytes - other.budget.least_bytes;
    keep_advice(plan, &advice);
}

#define FIELD(name) OPTION_##name, (int64_t)offsetof(struct options, name)

static void advise(struct plan *plan)
{
    const struct options *options = plan->source.options;
    const struct pool_limits *l = &plan->limits;
    const struct trial trials[] = {
        {FIELD(context_length), at_least(l->context_tokens / 2, 1)},
        {FIELD(max_running_requests), at_least(l->running_requests / 2, 1)},
        {FIELD(max_queued_requests), l->queued_requests / 4},
        {FIELD(chunked_prefill_size), at_least(l->chunk_tokens / 4, CHUNK_TOKENS_LEAST)},
        {FIELD(max_source_pixels), at_least(options->max_source_pixels / 4, SOURCE_PIXELS_LEAST)},
        {FIELD(large_bodies), 1},
        {FIELD(large_body_bytes), at_least(options->large_body_bytes / 4, BODY_BYTES_LEAST)},
        {FIELD(max_connections), l->connections / 4},
        {FIELD(vlm_cache_size_mb), 0},
        {OPTION_mm_process_config, NO_FIELD, l->picture_pixels / 4},
    };

    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        try_trial(plan, &trials[i]);
    }
}

#undef FIELD

bool plan_solve(struct plan *plan, const struct plan_source *source, struct options_error *error)
{
    assert(source->measure != NULL);
    assert(source->options != NULL);
    memset(plan, 0, sizeof *plan);
    plan->source = *source;
    plan->memory_bytes = source->options->is_given[OPTION_device_memory] ? (uint64_t)source->options->device_memory
                                                                         : source->available_bytes;
    if (!solve(plan, source->options, &source->facts, error)) {
        return false;
    }
    if (plan->outcome == BUDGET_TOO_SMALL) {
        advise(plan);
    }
    return true;
}

void plan_warn(const struct plan *plan)
{
    const struct options *options = plan->source.options;
    uint32_t running_wanted =
        options->is_given[OPTION_max_running_requests] ? (uint32_t)options->max_running_requests : PLAN_RUNNING_DEFAULT;
    uint64_t context_wanted =
        options->context_length > 0 ? (uint64_t)options->context_length : plan->source.facts.context_max_tokens;

    if (plan->limits.running_requests < running_wanted) {
        log_warn("running_requests_lowered from=%u to=%u reason=\"more would leave no room for one context\"",
                 running_wanted, plan->limits.running_requests);
    }
    if (plan->limits.context_tokens < context_wanted) {
        log_warn("context_lowered from=%llu to=%u reason=\"--max-total-tokens\"", (unsigned long long)context_wanted,
                 plan->limits.context_tokens);
    }
    if (options->max_total_tokens > 0 &&
        (uint64_t)options->max_total_tokens / KV_PAGE_TOKENS > plan->budget.plan.kv_pages) {
        log_warn("max_total_tokens_lowered from=%lld to=%llu reason=\"more does not fit, or could never be used\"",
                 (long long)options->max_total_tokens,
                 (unsigned long long)(plan->budget.plan.kv_pages - 1) * KV_PAGE_TOKENS);
    }
}
