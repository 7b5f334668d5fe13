/* crew: the compute team of kernels/team.h, on threads of ours. */
#ifndef ENGINE_CREW_H
#define ENGINE_CREW_H

#include "config.h"
#include "engine/thread.h"
#include "engine/wake.h"
#include "kernels/team.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct crew;

/* What one worker needs to know of itself. */
struct crew_worker {
    struct crew *crew;
    uint32_t index;
    struct thread thread;
};

/* Lies still from crew_start to crew_stop. */
struct crew {
    struct team team; /* first: a team that belongs to a crew is the crew */

    /* The job: written by run() while no worker has joined it. */
    team_tile *tile;
    void *ctx;
    uint32_t tile_count;

    _Alignas(64) _Atomic uint32_t next_tile; /* claimed one by one; runs past tile_count by at most worker_count */
    _Alignas(64) _Atomic uint32_t joined;    /* workers at the job, and whether more may join: see crew.c */
    atomic_bool is_stopping;
    struct wake begin;                       /* a job, or the end of the crew, was announced */
    struct wake end;                         /* the last worker left a closed job */
    struct crew_worker workers[THREADS_MAX]; /* [0] is whoever calls run() and has no thread here */
};

/* Starts worker_count - 1 threads (the caller of run() is worker 0). Before the seal. worker_count <= THREADS_MAX. */
void crew_start(struct crew *crew, uint32_t worker_count);

/* Ends the threads. No job may be running. */
void crew_stop(struct crew *crew);

#endif
