/* plan_measure: the bytes of one element of each pool, asked of the parts that will live there. The one place that
 * knows all.
 */
#ifndef ENGINE_PLAN_MEASURE_H
#define ENGINE_PLAN_MEASURE_H

#include "engine/model/checkpoint.h"
#include "engine/model/run.h"
#include "engine/plan_limits.h"

/* The model that is planned for. */
struct plan_subject {
    const struct checkpoint *checkpoint;
    enum model_dtype dtype;
};

/* What plan_limits needs to know. */
struct plan_facts plan_measure_facts(const struct plan_subject *subject, uint32_t cpus);

/* The limits of the model: for model_measure here, and for model_open later. */
struct model_limits plan_measure_model(const struct plan_subject *subject, const struct pool_limits *limits);

/* Fills every size; `subject` is a struct plan_subject (the type is plan_measure's of engine/plan_solve.h). */
void plan_measure_pools(const void *subject, const struct pool_limits *limits, struct pool_sizes *sizes);

#endif
