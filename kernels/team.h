/* team: how an op's tiles reach the threads. The engine brings the threads; kernels make none. */
#ifndef KERNELS_TEAM_H
#define KERNELS_TEAM_H

#include <stdint.h>

typedef void team_tile(void *ctx, uint32_t tile_index, uint32_t worker_index);

/* The calling thread is worker 0.
 *
 * Runs tile(ctx, i, w) once for each i < tile_count, in any order, on any of the workers (w < worker_count), and
 * returns when all are done. Tiles are claimed one by one, so a slow core delays its own share only; no op's result
 * depends on who claimed what. */
struct team {
    uint32_t worker_count; /* at least 1 */
    void (*run)(struct team *team, team_tile *tile, void *ctx, uint32_t tile_count);
};

/* The calling thread alone: for tests and tools. */
extern struct team team_serial;

#endif
