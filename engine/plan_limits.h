/* plan_limits: from flags to counts. Every default of a count is decided here and nowhere else. */
#ifndef ENGINE_PLAN_LIMITS_H
#define ENGINE_PLAN_LIMITS_H

#include "engine/options.h"
#include "pools/plan_input.h"

#include <stdbool.h>
#include <stdint.h>

/* What the counts need to know of the model and the machine. */
struct plan_facts {
    uint32_t context_max_tokens; /* the model's own */
    uint32_t picture_tokens_max; /* of the largest picture after resizing; 0: the model sees no pictures */
    uint32_t token_pixels;       /* pixels of one picture token */
    uint64_t mm_page_bytes;      /* features of MM_PAGE_TOKENS picture tokens */
    uint32_t cpus;               /* thread_cpu_count() */
};

/* Running requests when --max-running-requests is not given: to be lowered until one context fits. */
enum { PLAN_RUNNING_DEFAULT = 16 };

/* Fills all limits for `running_requests`. False with `error` filled when flags contradict the model or each other: the
 * program ends with START_USAGE. */
bool plan_limits_from_options(const struct options *options, const struct plan_facts *facts, uint32_t running_requests,
                              struct pool_limits *limits, struct options_error *error)
    __attribute__((warn_unused_result));

/* Bytes that the plan may take: --mem-fraction-static of --device-memory, else of `available_bytes`. The fraction is
 * 0.85 when it is not given, and 1 when --device-memory is given alone. */
uint64_t plan_limit_bytes(const struct options *options, uint64_t available_bytes);
double plan_fraction(const struct options *options);

#endif
