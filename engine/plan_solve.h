/* plan_solve: from flags and a model to the whole memory plan, or to what it lacks. */
#ifndef ENGINE_PLAN_SOLVE_H
#define ENGINE_PLAN_SOLVE_H

#include "engine/options.h"
#include "engine/plan_limits.h"
#include "pools/budget.h"

/* Fills the bytes of one element of each pool for these limits. `context` is the caller's. Called often: for each
 * number of running requests that is tried, and for each piece of advice. */
typedef void plan_measure(const void *context, const struct pool_limits *limits, struct pool_sizes *sizes);

/* What the plan is made from. Outlives the plan. */
struct plan_source {
    const struct options *options;
    struct plan_facts facts;
    plan_measure *measure;
    const void *context;
    uint64_t available_bytes; /* domain_available_bytes() */
    bool is_one_memory;       /* domain_is_one_memory() */
    uint32_t tensor_count;    /* of the checkpoint, for the print */
    uint64_t tensor_bytes;    /* of them in its files */
};

/* One flag that would free memory. */
struct plan_advice {
    const char *flag;     /* "--context-length" */
    char value[48];       /* what was tried: "2048" */
    uint64_t freed_bytes; /* of the smallest start that is possible */
};

enum { PLAN_ADVICE_MAX = 3 };

struct plan {
    struct plan_source source;
    struct pool_limits limits;
    struct pool_sizes sizes;
    struct budget budget;
    enum budget_outcome outcome;
    uint64_t memory_bytes;                      /* that the limit is a fraction of */
    uint32_t advice_count;                      /* BUDGET_TOO_SMALL only */
    struct plan_advice advice[PLAN_ADVICE_MAX]; /* what frees most, first */
};

/* Solves. The default number of running requests is lowered until one context fits; a number that the user gave is not.
 * False with `error` filled when flags contradict each other (START_USAGE). Otherwise `plan->outcome` says how it went.
 */
bool plan_solve(struct plan *plan, const struct plan_source *source, struct options_error *error)
    __attribute__((warn_unused_result));

/* Logs what was decided against a wish: running requests or context lowered. */
void plan_warn(const struct plan *plan);

#endif
