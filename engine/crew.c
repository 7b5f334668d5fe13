/* crew: the compute team of kernels/team.h, on threads of ours.
 *
 * Always true: the job's fields change only while `joined` is 0, that is, while no worker looks at them. A worker joins
 * only as long as the job is open; one that wakes up too late finds it closed and goes back to sleep, so the caller
 * waits for tiles that are being worked on and never for a sleeper.
 */
#include "engine/crew.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>

enum { SPINS = 200 }; /* some microseconds: ops follow each other closely, and cores are shared with others */

static const uint32_t OPEN = 1u << 31;

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Works on tiles until none is left. */
static void claim_tiles(struct crew *crew, uint32_t worker_index)
{
    uint32_t tile_count = crew->tile_count;

    assert(worker_index < crew->team.worker_count);
    for (;;) {
        uint32_t tile_index = atomic_fetch_add_explicit(&crew->next_tile, 1, memory_order_relaxed);
        if (tile_index >= tile_count) {
            return;
        }
        crew->tile(crew->ctx, tile_index, worker_index);
    }
}

static bool join(struct crew *crew)
{
    uint32_t joined = atomic_load_explicit(&crew->joined, memory_order_relaxed);

    while ((joined & OPEN) != 0) {
        if (atomic_compare_exchange_weak_explicit(&crew->joined, &joined, joined + 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

static void leave(struct crew *crew)
{
    uint32_t before = atomic_fetch_sub_explicit(&crew->joined, 1, memory_order_acq_rel);

    assert((before & ~OPEN) > 0);
    if (before == 1) { /* closed, and nobody else is at it */
        wake_up(&crew->end);
    }
}

/* Waits for a ticket other than `seen`: a while on the spot, then asleep. */
static uint32_t wait_for_ticket(struct wake *wake, uint32_t seen)
{
    for (int i = 0; i < SPINS && wake_ticket(wake) == seen; i++) {
        relax();
    }
    (void)wake_wait(wake, seen, -1);
    return wake_ticket(wake);
}

static void work(void *argument)
{
    struct crew_worker *worker = argument;
    struct crew *crew = worker->crew;
    uint32_t seen = 0; /* the ticket at crew_start: nothing that comes later is missed */

    assert(worker->index > 0);
    for (;;) {
        seen = wait_for_ticket(&crew->begin, seen);
        if (atomic_load_explicit(&crew->is_stopping, memory_order_acquire)) {
            return;
        }
        if (join(crew)) {
            claim_tiles(crew, worker->index);
            leave(crew);
        }
    }
}

/* Closes the job and waits until the workers that are at it have left. */
static void finish(struct crew *crew)
{
    (void)atomic_fetch_and_explicit(&crew->joined, ~OPEN, memory_order_acq_rel);
    for (int i = 0;; i++) {
        uint32_t seen = wake_ticket(&crew->end);
        if (atomic_load_explicit(&crew->joined, memory_order_acquire) == 0) {
            return;
        }
        if (i < SPINS) {
            relax();
        } else {
            (void)wake_wait(&crew->end, seen, -1);
        }
    }
}

static void run(struct team *team, team_tile *tile, void *ctx, uint32_t tile_count)
{
    struct crew *crew = (struct crew *)team; /* its first member */

    assert(tile != NULL);
    assert(tile_count < UINT32_MAX - THREADS_MAX);
    assert(atomic_load_explicit(&crew->joined, memory_order_relaxed) == 0); /* no job inside a job */
    crew->tile = tile;
    crew->ctx = ctx;
    crew->tile_count = tile_count;
    atomic_store_explicit(&crew->next_tile, 0, memory_order_relaxed);
    if (team->worker_count == 1 || tile_count <= 1) {
        claim_tiles(crew, 0);
        return;
    }
    atomic_store_explicit(&crew->joined, OPEN, memory_order_release);
    wake_up(&crew->begin);
    claim_tiles(crew, 0);
    finish(crew);
}

void crew_start(struct crew *crew, uint32_t worker_count)
{
    assert(worker_count >= 1);
    assert(worker_count <= THREADS_MAX);
    *crew = (struct crew){.team = {.worker_count = worker_count, .run = run}};
    for (uint32_t i = 1; i < worker_count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "compute %u", i);
        crew->workers[i].crew = crew;
        crew->workers[i].index = i;
        thread_start(&crew->workers[i].thread, name, THREAD_NORMAL, work, &crew->workers[i]);
    }
}

void crew_stop(struct crew *crew)
{
    assert(atomic_load_explicit(&crew->joined, memory_order_relaxed) == 0);
    atomic_store_explicit(&crew->is_stopping, true, memory_order_release);
    wake_up(&crew->begin);
    for (uint32_t i = 1; i < crew->team.worker_count; i++) {
        thread_join(&crew->workers[i].thread);
    }
}
