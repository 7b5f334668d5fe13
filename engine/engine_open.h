/* engine_open: making, starting and stopping the engine. main's side; conn sees engine.h. */
#ifndef ENGINE_ENGINE_OPEN_H
#define ENGINE_ENGINE_OPEN_H

#include "engine/engine.h"
#include "engine/http/chat_request.h"
#include "engine/model/run.h"
#include "pools/plan_input.h"

/* What the engine is made of. Everything outlives it. */
struct engine_parts {
    const struct checkpoint *checkpoint;
    const struct pool_limits *limits;
    struct model *model;
    const struct tokenizer *tokenizer;
    uint32_t id_limit; /* ids of the tokenizer: no other may be chosen */
    const struct chat_template *chat_template;
    struct chat_rules rules;
    uint64_t seed;
    uint32_t step_budget_ms;
    uint32_t decode_log_interval; /* steps */

    /* Tests: told of each row of logits, the one that chooses token `index`, before it is sampled. NULL: nobody. */
    void (*watch_logits)(void *ctx, const struct request *request, uint32_t index, const float *logits);
    void *watch_ctx;
};

/* Bytes of the pools ENGINE and QUEUE. */
uint64_t engine_bytes(const struct pool_limits *limits);
uint64_t engine_queue_bytes(const struct pool_limits *limits);

/* Lays the engine over its pools; takes the REQUEST and TOKENS of /health_generate. The process has one. */
struct engine *engine_open(const struct engine_parts *parts);

/* Starts intake, picture and engine threads. Before the seal. */
void engine_start(struct engine *engine);

/* Ends what still runs (clients are told FINISH_ABORT), then the threads. No request is submitted any more. */
void engine_stop(struct engine *engine);

#endif
