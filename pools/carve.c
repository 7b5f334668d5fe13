/* carve: places one block after the other in a range. Counting and placing are the same code.
 *
 * Always true between calls: gap_bytes <= offset_bytes; in place mode offset_bytes <= range_bytes. A carve that has
 * overflowed stays so, and its offsets no longer move.
 */
#include "pools/carve.h"

#include <assert.h>
#include <stddef.h>

void carve_count(struct carve *carve)
{
    assert(carve != NULL);
    *carve = (struct carve){.base = NULL, .range_bytes = UINT64_MAX};
}

void carve_place(struct carve *carve, void *base, uint64_t range_bytes)
{
    assert(base != NULL);
    assert((uintptr_t)base % CARVE_PAGE_BYTES == 0);
    *carve = (struct carve){.base = base, .range_bytes = range_bytes};
}

/* Moves the offset to a multiple of `alignment`, then `bytes` further. Returns where the block begins. */
static uint64_t advance(struct carve *carve, uint64_t bytes, uint64_t alignment)
{
    uint64_t begin, end;

    assert(alignment > 0);
    if (carve->has_overflowed || __builtin_add_overflow(carve->offset_bytes, alignment - 1, &begin)) {
        carve->has_overflowed = true;
        return 0;
    }
    begin = begin / alignment * alignment;
    if (__builtin_add_overflow(begin, bytes, &end)) {
        carve->has_overflowed = true;
        return 0;
    }
    assert(end <= carve->range_bytes); /* the range was counted by this very code */
    carve->offset_bytes = end;
    return begin;
}

void *carve_take(struct carve *carve, uint64_t element_bytes, uint64_t count, uint64_t *offset_bytes)
{
    uint64_t bytes;

    assert(offset_bytes != NULL);
    if (__builtin_mul_overflow(element_bytes, count, &bytes)) {
        carve->has_overflowed = true;
        bytes = 0;
    }
    *offset_bytes = advance(carve, bytes, bytes < CARVE_BIG_BYTES ? CARVE_LINE_BYTES : CARVE_PAGE_BYTES);
    return carve->base == NULL || bytes == 0 ? NULL : carve->base + *offset_bytes;
}

void *carve_gap(struct carve *carve)
{
    uint64_t begin = advance(carve, CARVE_PAGE_BYTES, CARVE_PAGE_BYTES);

    carve->gap_bytes += CARVE_PAGE_BYTES;
    return carve->base == NULL ? NULL : carve->base + begin;
}

void carve_finish(struct carve *carve)
{
    (void)advance(carve, 0, CARVE_PAGE_BYTES);
}

uint64_t carve_memory_bytes(const struct carve *carve)
{
    if (carve->has_overflowed) {
        return UINT64_MAX;
    }
    assert(carve->gap_bytes <= carve->offset_bytes);
    return carve->offset_bytes - carve->gap_bytes;
}
