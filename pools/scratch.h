/* scratch: a worker's own block, cut from the front during one job and whole again after it. */
#ifndef POOLS_SCRATCH_H
#define POOLS_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

/* One thread's. */
struct scratch {
    unsigned char *base;
    uint64_t capacity_bytes;
    uint64_t used_bytes;
    uint64_t used_high_water_bytes;
    uint64_t refused_count;
    bool is_busy; /* between begin and end */
};

/* Lays a scratch over memory that the caller keeps, aligned to 64. */
void scratch_open(struct scratch *scratch, void *memory, uint64_t capacity_bytes);

/* Begins a job: the whole block is free. Asserts that none is under way. */
void scratch_begin(struct scratch *scratch);

/* Cuts a piece, aligned to 64, valid until scratch_end. NULL when what is left is too short: counted. */
void *scratch_take(struct scratch *scratch, uint64_t bytes);

/* Bytes that one scratch_take could still get. */
uint64_t scratch_left_bytes(const struct scratch *scratch);

/* Ends the job: every piece is invalid. */
void scratch_end(struct scratch *scratch);

#endif
