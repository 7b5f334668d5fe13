/* measure: bytes of one element of each pool, from the records of all sub-systems. The plan's view of the program. */
#ifndef ENGINE_MEASURE_H
#define ENGINE_MEASURE_H

#include "engine/model/run.h"
#include "engine/plan_solve.h"

struct measure {
    const struct checkpoint *checkpoint;
    enum model_dtype dtype;
};

/* What the plan needs to know of the model and the machine. */
void measure_facts(const struct measure *measure, uint32_t cpus, struct plan_facts *facts);

/* A plan_measure; `context` is a struct measure. */
void measure_sizes(const void *context, const struct pool_limits *limits, struct pool_sizes *sizes);

/* The model's limits that follow from the plan's. */
void measure_model_limits(const struct measure *measure, const struct pool_limits *limits, struct model_limits *model);

#endif
