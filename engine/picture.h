/* picture: the worker that decodes one picture at a time into a PIXELS slot, beside the engine. */
#ifndef ENGINE_PICTURE_H
#define ENGINE_PICTURE_H

#include "engine/image/picture_file.h"
#include "engine/request.h"
#include "engine/thread.h"
#include "engine/wake.h"

/* One picture. Pointers are valid until the worker is through with it. */
struct picture_job {
    const struct picture *picture; /* its file lies in a BODY that is kept meanwhile */
    unsigned char *pixels;
    size_t pixels_bytes;
    const atomic_bool *is_cancelled;
};

struct picture_worker {
    struct thread thread;
    struct wake wake;       /* a job, or the end */
    struct wake *done;      /* the engine's */
    _Atomic uint32_t state; /* enum: who may touch job, err and reason */
    atomic_bool is_stopping;
    struct picture_job job;
    enum err err;
    const char *reason; /* constant text */
    struct image_rules rules;
    uint64_t max_source_pixels;
    struct picture_regions regions;
};

/* Lays the worker's regions over an element of IMAGE_RGB and of IMAGE_WORK, and starts its thread; `done` is woken
 * after each job. Before the seal. */
void picture_start(struct picture_worker *worker, const struct image_rules *rules, uint64_t max_source_pixels,
                   struct wake *done);
void picture_stop(struct picture_worker *worker);

/* Gives it a job. It must have none. */
void picture_give(struct picture_worker *worker, const struct picture_job *job);

/* True once for each job, when it is done: ERR_OK, ERR_CLIENT_GONE (cancelled), or a refusal with its reason. */
bool picture_take(struct picture_worker *worker, enum err *err, const char **reason);

/* True if picture_take would be. */
bool picture_is_done(struct picture_worker *worker);

#endif
