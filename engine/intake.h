/* intake: the workers that turn a body into a request: JSON, chat template, token ids, every 400.
 *
 * A request leaves intake either for the engine, with its prompt whole (pictures' pads expanded, the context checked),
 * or as DONE with its refusal. No pixel is decoded here.
 */
#ifndef ENGINE_INTAKE_H
#define ENGINE_INTAKE_H

#include "engine/http/chat_request.h"
#include "engine/thread.h"
#include "engine/wake.h"
#include "pools/ring.h"

enum { INTAKE_WORKERS_MAX = 8 };

struct intake;

/* What the workers work with; the engine's. Constant while they run. */
struct intake_rules {
    struct chat_rules chat;
    const struct chat_template *chat_template;
    const struct tokenizer *tokenizer;
    int32_t image_token_id;
    uint32_t context_tokens;
    uint64_t seed; /* of requests that name none */
    void (*deliver)(void *ctx,
                    struct request *request); /* to the engine, or DONE if it has an err; on the worker's thread */
    void *ctx;
};

struct intake_worker {
    struct intake *intake;
    struct thread thread;
    struct wake wake;
    struct ring ring;         /* of request indices, from conn */
    _Atomic uint32_t load;    /* requests in the ring and in work */
    struct chat_parse *parse; /* lies in the element of INTAKE_SCRATCH */
    void *scratch;
    uint64_t scratch_bytes;
};

struct intake {
    struct intake_rules rules;
    uint32_t worker_count;
    atomic_bool is_stopping;
    struct intake_worker workers[INTAKE_WORKERS_MAX];
};

/* Bytes of an element of INTAKE_SCRATCH, and of the workers' rings together. */
uint64_t intake_scratch_bytes(uint32_t context_tokens);
uint64_t intake_ring_bytes(uint32_t worker_count, uint32_t request_count);

/* Takes its elements of INTAKE_SCRATCH, lays the rings over `rings`, starts the threads. Before the seal. */
void intake_start(struct intake *intake, const struct intake_rules *rules, uint32_t worker_count,
                  uint32_t request_count, void *rings);
void intake_stop(struct intake *intake);

/* Hands a request to the worker with the least to do. conn's thread. */
void intake_give(struct intake *intake, const struct request *request);

/* All that a worker does with one request, on the calling thread: for tests. ERR_OK: it is fit for the engine. */
enum err intake_prepare(struct intake_worker *worker, struct request *request) ERR_CHECKED;

#endif
