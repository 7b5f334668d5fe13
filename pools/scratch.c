/* scratch: a worker's own block, cut from the front during one job and whole again after it.
 *
 * Always true between calls: used_bytes is a multiple of 64 and at most capacity_bytes; it is 0 when no job is under
 * way.
 */
#include "pools/scratch.h"

#include <assert.h>
#include <stddef.h>

enum { PIECE_ALIGNMENT_BYTES = 64 };

void scratch_open(struct scratch *scratch, void *memory, uint64_t capacity_bytes)
{
    assert(scratch != NULL && memory != NULL);
    assert((uintptr_t)memory % PIECE_ALIGNMENT_BYTES == 0);
    *scratch = (struct scratch){
        .base = memory,
        .capacity_bytes = capacity_bytes / PIECE_ALIGNMENT_BYTES * PIECE_ALIGNMENT_BYTES,
    };
}

void scratch_begin(struct scratch *scratch)
{
    assert(!scratch->is_busy);
    assert(scratch->used_bytes == 0);
    scratch->is_busy = true;
}

uint64_t scratch_left_bytes(const struct scratch *scratch)
{
    assert(scratch->used_bytes <= scratch->capacity_bytes);
    return scratch->capacity_bytes - scratch->used_bytes;
}

void *scratch_take(struct scratch *scratch, uint64_t bytes)
{
    assert(scratch->is_busy);
    if (bytes > scratch_left_bytes(scratch)) {
        scratch->refused_count++;
        return NULL;
    }
    void *piece = scratch->base + scratch->used_bytes;
    scratch->used_bytes += (bytes + PIECE_ALIGNMENT_BYTES - 1) / PIECE_ALIGNMENT_BYTES * PIECE_ALIGNMENT_BYTES;
    if (scratch->used_bytes > scratch->used_high_water_bytes) {
        scratch->used_high_water_bytes = scratch->used_bytes;
    }
    return piece;
}

void scratch_end(struct scratch *scratch)
{
    assert(scratch->is_busy);
    scratch->is_busy = false;
    scratch->used_bytes = 0;
}
