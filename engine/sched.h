/* sched: who waits, who runs, and what enters the next step. It decides; engine.c executes; tests execute it with a
 * fake clock and fake arithmetic. It takes no time, starts no work and knows no thread.
 *
 * A tick: submit what arrived, sweep out who left, admit, plan a step's rows, compute them, advance, append the tokens
 * that were sampled (or end the request); then pictures: one to decode, one to encode. Requests that ended are taken
 * one by one.
 */
#ifndef ENGINE_SCHED_H
#define ENGINE_SCHED_H

#include "engine/admit.h"
#include "engine/mm.h"
#include "engine/prefix.h"
#include "engine/request.h"
#include "pools/slab.h"

/* States of a running slot. A request in the queue has no slot. */
enum sched_state {
    SLOT_BUG, /* no state: a transition that cannot be */
    SLOT_FREE,
    SLOT_PREFILL,      /* the prompt is being computed, chunk by chunk */
    SLOT_WAIT_PICTURE, /* its next row is of a picture that is not encoded yet */
    SLOT_DECODE,       /* a row a step */
    SLOT_PAUSED,       /* its next page would be unsafe, or was refused: it keeps what it has */
    SLOT_LEAVING,      /* ended, but the picture worker still reads its body */
    SLOT_STATES
};

enum sched_event {
    EVENT_START,
    EVENT_PICTURE_MISSING,
    EVENT_PICTURE_READY,
    EVENT_PROMPT_DONE,
    EVENT_PAGE_REFUSED,
    EVENT_PAGE_GRANTED,
    EVENT_END,           /* finished, failed, or the client left */
    EVENT_END_BODY_BUSY, /* the same, while the picture worker reads the body */
    EVENT_BODY_BACK,
    SCHED_EVENTS
};

enum { SLOT_PICTURES = 2 }; /* held at once: the one being prefilled, the next one */

struct sched_slot {
    uint32_t state; /* enum sched_state */
    struct request *request;
    bool is_health;    /* the slot and page kept for /health_generate: outside of admission and caches */
    bool is_body_told; /* engine.c: conn knows that the body may go */
    bool is_sharing;   /* its pages may still enter the prefix cache */
    slab_handle page_list;
    uint32_t *pages;
    uint32_t page_count;
    uint32_t shared_count;            /* leading pages that the prefix cache names, or other choices hold */
    uint32_t node;                    /* of the last of them, if the cache names it */
    uint32_t claim_pages;             /* most that it can ever hold */
    uint32_t known;                   /* tokens: prompt and answer */
    uint32_t computed;                /* of them in the KV */
    uint32_t picture;                 /* first picture that is not wholly in the KV */
    uint32_t features[SLOT_PICTURES]; /* of picture, picture + 1; MM_NONE: not held yet */
};

/* Rows of one sequence in a step: tokens first .. first+count-1. */
struct sched_share {
    uint32_t slot;
    uint32_t first, count;
    bool wants_logits; /* of its last row: the token behind it is not known yet */
};

/* A picture for the worker: decode `picture` of `request` into the PIXELS slot `pixels`. */
struct sched_job {
    struct request *request;
    uint32_t slot, picture;
    uint32_t feature;
    slab_handle pixels;
    atomic_bool is_cancelled; /* nobody waits for it any more */
};

struct sched_limits {
    uint32_t running_requests;
    uint32_t picture_pages;
    bool has_prefix_cache;
    bool is_unsafe; /* tests: grants without the safety check, to show that the simulation finds the deadlock */
};

struct sched {
    struct sched_limits limits;
    struct kv kv;
    struct prefix prefix;
    struct mm mm;
    struct sched_slot *slots; /* [running_requests + 1]; the last one is for /health_generate */
    uint32_t *ages;           /* started slots, the eldest first */
    struct admit_row *rows;   /* [running_requests] */
    struct admit_work *work;  /* [running_requests] */
    uint32_t started_count;
    uint32_t paused_count, queued_count;
    uint32_t queue_first, queue_last; /* request indices, linked by queue_next */
    uint32_t ended_first, ended_last;
    uint64_t blocked_gains; /* kv.gains when the queue's first was found unsafe, UINT64_MAX: not yet */
    uint32_t health_page;   /* KV page of its own */
    bool is_decoding;       /* job is under way */
    struct sched_job job;
    uint32_t decoded[SLOT_PICTURES]; /* features whose PIXELS slot is full, the first next; MM_NONE */
    slab_handle decoded_pixels[SLOT_PICTURES];
    uint32_t encoding;                     /* feature, MM_NONE: none; its pixels are decoded_pixels[0] */
    uint64_t prompt_tokens, cached_tokens; /* of started requests so far */
};

/* "prefill", "paused", ...; of SLOT_FREE and of what has no slot yet: "queued". */
const char *sched_state_name(uint32_t state);

/* Writes down, in each started request, what it holds. */
void sched_publish_holdings(const struct sched *sched);

/* Bytes of memory for sched_open, a multiple of 64; and of an element of KV_META and PREFIX. */
uint64_t sched_bytes(uint32_t running_requests);

/* Opens an idle scheduler over `memory` and the pools KV_PAGE, KV_META, PREFIX, MM_PAGE, FEATURE, PIXELS, PAGE_LIST.
 * Takes the page and the page list of /health_generate. */
void sched_open(struct sched *sched, const struct sched_limits *limits, void *memory);

/* Puts a request at the end of the queue. Its plain fields are the engine's until it is taken back as ended. */
void sched_submit(struct sched *sched, struct request *request);

/* Starts the request in the slot kept for it: one prompt token, one answer token. False while it is in use. */
bool sched_submit_health(struct sched *sched, struct request *request);

/* Ends every request whose is_cancelled is set. */
void sched_sweep(struct sched *sched);

/* Cancels everybody: the server is going down. */
void sched_cancel_all(struct sched *sched);

/* Resumes the paused, eldest first; then starts from the queue's head as long as it is safe. A choice of a request of
 * which another one computes the prompt is passed over until that is done: then it shares the pages. So this is called
 * once more between sched_advance and the answers. */
void sched_admit(struct sched *sched);

/* Rows of the next step, at most running + 1 shares: a row for everyone who decodes, and prompt rows, eldest first,
 * rows_max together. Takes the KV pages of decode rows; who gets none pauses. Returns the number of shares. */
uint32_t sched_plan(struct sched *sched, uint32_t rows_max, struct sched_share *shares);

/* The share's rows are in the KV now. */
void sched_advance(struct sched *sched, const struct sched_share *share);

/* The token behind the last row. The caller published it, or ends the request after this. */
void sched_append(struct sched *sched, uint32_t index, int32_t token);

/* The request is over; its finish or err is set. Everything but its body's use by the worker is given back now. */
void sched_end(struct sched *sched, uint32_t index);

/* The next request that ended, NULL: none. It is not the scheduler's any more. */
struct request *sched_take_ended(struct sched *sched);

/* The next picture for the worker, of the eldest request that wants one and finds room. False: none now. */
bool sched_next_job(struct sched *sched);

/* The worker is through with the job. err: ERR_OK; ERR_CLIENT_GONE when it was cancelled; else all who wait for the
 * picture are refused with it, naming their part and `reason`. */
void sched_job_done(struct sched *sched, enum err err, const char *reason);

/* The next feature to encode; its pixels are *pixels. False: none, or one is being encoded. */
bool sched_next_encode(struct sched *sched, uint32_t *feature, slab_handle *pixels);

/* Its rows lie in its pages. */
void sched_encoded(struct sched *sched);

/* True if nobody needs the feature that is being encoded: the caller drops the work and calls this again as done. */
bool sched_encode_is_unwanted(const struct sched *sched);
void sched_drop_encode(struct sched *sched);

/* True if somebody streams: a row a step is owed. */
bool sched_has_decode(const struct sched *sched);

/* Started and waiting requests, those that leave included. */
uint32_t sched_load(const struct sched *sched);

/* Empties the caches. ERR_BUSY while a request is started: it may hold what is cached. */
enum err sched_flush(struct sched *sched) ERR_CHECKED;

/* Asserts every invariant: counts, holders, states, the safe state. For tests. */
void sched_check(struct sched *sched);

#endif
