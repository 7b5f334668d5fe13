/* engine_inside: the engine's record, shared by its own files; nobody else includes it. */
#ifndef ENGINE_ENGINE_INSIDE_H
#define ENGINE_ENGINE_INSIDE_H

#include "engine/answer.h"
#include "engine/batch.h"
#include "engine/engine_open.h"
#include "engine/intake.h"
#include "engine/pace.h"
#include "engine/picture.h"
#include "engine/sched.h"
#include "pools/ring.h"

enum health_state { HEALTH_IDLE, HEALTH_WANTED, HEALTH_RUNNING, HEALTH_DONE };

/* For the log and the throughput's gauge. */
struct engine_meter {
    uint64_t window_us; /* start of the throughput's window */
    uint64_t window_tokens;
    uint32_t decode_steps;
    uint64_t logged_cached_tokens;                 /* what log_step has told so far */
    uint64_t decode_begin_us, decode_begin_tokens; /* at the last line about decoding, or when work came since */
};

struct engine {
    struct engine_parts parts;
    struct engine_stats stats;
    struct sched sched;
    struct batch batch;
    struct answer *answers; /* [running + 1], by slot */
    void **mm_pages;        /* [picture_pages]: of the picture being encoded */
    float *logits;          /* [running + 1][vocab] */
    void *sample_work;
    struct pace pace;
    struct engine_meter meter;

    /* What others give to the engine's thread. */
    unsigned char *queues; /* the element of QUEUE: intake's rings, arrivals, notices */
    struct wake wake;
    struct crowd_ring arrivals; /* request indices, from intake */
    atomic_bool has_cancels, wants_flush, is_stopping;
    _Atomic uint32_t health; /* enum health_state */
    struct request *health_request;
    uint32_t health_tokens; /* its element of TOKENS */
    int32_t health_token;

    /* What it gives to conn. */
    _Atomic uint64_t *notices; /* bit: the request changed */
    uint32_t notice_words;
    uint32_t notice_at;       /* conn's place in the words */
    uint64_t notice_bits;     /* bits of that word that conn took and has not looked at */
    atomic_bool is_signalled; /* the eventfd is readable, or will be */
    int notice_fd;
    _Atomic uint32_t open_count; /* submitted and not DONE */

    struct intake intake;
    struct picture_worker picture;
    struct thread thread;
};

/* engine_tick.c: one round. True if there was anything to do. */
bool engine_tick(struct engine *engine);

/* How long the engine may sleep after such a round if nobody wakes it; -1: for ever. */
int64_t engine_rest_ms(const struct engine *engine);

/* Tells conn that the request changed. Any thread. */
void engine_notice(struct engine *engine, uint32_t request_index);

/* Gives a request back to conn: DONE. Nothing of it may be touched after this. Any thread that holds it. */
void engine_finish(struct engine *engine, struct request *request);

#endif
