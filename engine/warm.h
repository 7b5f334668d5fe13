/* warm: runs every op once at each shape class before "ready", so that nothing is touched, chosen or paged in later. */
#ifndef ENGINE_WARM_H
#define ENGINE_WARM_H

#include "engine/model/run.h"
#include "pools/plan_input.h"

/* Overwrites KV pages, MM pages and PIXELS: nobody may hold any yet. The results are thrown away. */
void warm_model(struct model *model, const struct checkpoint *checkpoint, const struct pool_limits *limits);

#endif
