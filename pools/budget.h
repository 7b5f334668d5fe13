/* budget: how many KV pages fit. Everything else in the plan is fixed before. */
#ifndef POOLS_BUDGET_H
#define POOLS_BUDGET_H

#include "pools/pools.h"

enum budget_outcome {
    BUDGET_FITS,
    BUDGET_TOO_SMALL, /* less than one full context + 1 page; plan is what the smallest start would take */
    BUDGET_OVERFLOW   /* a size or a sum does not fit 64 bits */
};

struct budget {
    uint64_t limit_bytes;      /* what may be taken */
    uint64_t fixed_bytes;      /* with no KV page */
    uint64_t page_price_bytes; /* of one more KV page, its records in other pools included */
    uint64_t least_bytes;      /* of the smallest start: with least_pages */
    uint64_t missing_bytes;    /* BUDGET_TOO_SMALL: what the limit lacks */
    uint32_t least_pages;      /* one full context + 1 for /health_generate */
    uint32_t cap_pages;        /* more could never be used */
    struct pool_plan plan;     /* of the chosen number of pages */
};

/* Solves for the largest number of KV pages, at most limits->kv_pages_cap, whose plan keeps within `limit_bytes`: the
 * sum of all domains if they are one memory, else the device's. */
enum budget_outcome budget_solve(const struct pool_sizes *sizes, const struct pool_limits *limits, uint64_t limit_bytes,
                                 bool is_one_memory, struct budget *budget);

/* What a plan takes of the limit. */
uint64_t budget_taken_bytes(const struct pool_plan *plan, bool is_one_memory);

#endif
