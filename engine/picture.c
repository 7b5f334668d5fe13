/* picture: the worker that decodes one picture at a time.
 *
 * Always true: job, err and reason are the worker's exactly while state is GIVEN.
 */
#include "engine/picture.h"

#include "pools/pools.h"

#include <assert.h>

enum picture_state { PICTURE_IDLE, PICTURE_GIVEN, PICTURE_DONE };

static void decode(struct picture_worker *worker)
{
    const struct picture_job *job = &worker->job;
    const struct picture *picture = job->picture;
    struct picture_source source = {.file = picture->file,
                                    .file_bytes = picture->file_bytes,
                                    .max_source_pixels = worker->max_source_pixels,
                                    .is_cancelled = job->is_cancelled};
    struct image_grid grid = {0};

    worker->reason = "";
    worker->err = picture_file_decode(&source, &worker->rules, &worker->regions, job->pixels, job->pixels_bytes, &grid,
                                      &worker->reason);
    if (worker->err == ERR_OK) {
        assert(grid.grid_h == picture->grid_h && grid.grid_w == picture->grid_w);
    }
}

static void work(void *argument)
{
    struct picture_worker *worker = argument;

    for (;;) {
        uint32_t seen = wake_ticket(&worker->wake);
        if (atomic_load_explicit(&worker->is_stopping, memory_order_acquire)) {
            return;
        }
        if (atomic_load_explicit(&worker->state, memory_order_acquire) != PICTURE_GIVEN) {
            (void)wake_wait(&worker->wake, seen, -1);
            continue;
        }
        decode(worker);
        atomic_store_explicit(&worker->state, PICTURE_DONE, memory_order_release);
        wake_up(worker->done);
    }
}

void picture_start(struct picture_worker *worker, const struct image_rules *rules, uint64_t max_source_pixels,
                   struct wake *done)
{
    slab_handle rgb = pools_get(POOL_IMAGE_RGB), memory = pools_get(POOL_IMAGE_WORK);

    assert(slab_is_some(rgb) && slab_is_some(memory));
    *worker = (struct picture_worker){.done = done, .rules = *rules, .max_source_pixels = max_source_pixels};
    worker->regions = (struct picture_regions){.rgb = pools_at(POOL_IMAGE_RGB, rgb),
                                               .rgb_bytes = (size_t)pools_element_bytes(POOL_IMAGE_RGB),
                                               .work = pools_at(POOL_IMAGE_WORK, memory),
                                               .work_bytes = (size_t)pools_element_bytes(POOL_IMAGE_WORK)};
    thread_start(&worker->thread, "picture", THREAD_LOW, work, worker);
}

void picture_stop(struct picture_worker *worker)
{
    assert(atomic_load_explicit(&worker->state, memory_order_acquire) != PICTURE_GIVEN);
    atomic_store_explicit(&worker->is_stopping, true, memory_order_release);
    wake_up(&worker->wake);
    thread_join(&worker->thread);
}

void picture_give(struct picture_worker *worker, const struct picture_job *job)
{
    assert(atomic_load_explicit(&worker->state, memory_order_relaxed) == PICTURE_IDLE);
    assert(job->picture->file != NULL && job->pixels != NULL);
    worker->job = *job;
    atomic_store_explicit(&worker->state, PICTURE_GIVEN, memory_order_release);
    wake_up(&worker->wake);
}

bool picture_is_done(struct picture_worker *worker)
{
    return atomic_load_explicit(&worker->state, memory_order_acquire) == PICTURE_DONE;
}

bool picture_take(struct picture_worker *worker, enum err *err, const char **reason)
{
    if (!picture_is_done(worker)) {
        return false;
    }
    assert(worker->err == ERR_OK || worker->reason != NULL);
    *err = worker->err;
    *reason = worker->reason;
    atomic_store_explicit(&worker->state, PICTURE_IDLE, memory_order_relaxed);
    return true;
}
