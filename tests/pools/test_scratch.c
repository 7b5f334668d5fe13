/* Properties of pools/scratch.c: pieces do not overlap, the block is whole again after each job, misuse is caught. */
#include "pools/scratch.h"
#include "tests/harness.h"

#include <string.h>

enum { CAPACITY_BYTES = 1000 }; /* not a multiple of 64: the last 40 bytes are never used */

static _Alignas(64) unsigned char memory[CAPACITY_BYTES];
static struct scratch scratch;

static void pieces_are_aligned_and_apart(void)
{
    scratch_open(&scratch, memory, CAPACITY_BYTES);
    for (int job = 0; job < 100; job++) {
        scratch_begin(&scratch);
        CU_ASSERT(scratch_left_bytes(&scratch) == 960);
        unsigned char *end = memory;
        for (uint64_t bytes = 1; bytes < 300; bytes += 37) {
            unsigned char *piece = scratch_take(&scratch, bytes);
            if (piece == NULL) {
                break;
            }
            CU_ASSERT((uintptr_t)piece % 64 == 0);
            CU_ASSERT(piece >= end);
            memset(piece, 1, bytes);
            end = piece + bytes;
        }
        CU_ASSERT(end <= memory + CAPACITY_BYTES);
        scratch_end(&scratch);
    }
}

static void what_does_not_fit_is_refused_and_counted(void)
{
    scratch_open(&scratch, memory, CAPACITY_BYTES);
    scratch_begin(&scratch);
    CU_ASSERT(scratch_take(&scratch, 961) == NULL);
    CU_ASSERT(scratch_take(&scratch, UINT64_MAX) == NULL);
    CU_ASSERT(scratch.refused_count == 2);
    CU_ASSERT(scratch_take(&scratch, 960) != NULL);
    CU_ASSERT(scratch_left_bytes(&scratch) == 0);
    CU_ASSERT(scratch_take(&scratch, 1) == NULL);
    scratch_end(&scratch);
    CU_ASSERT(scratch.used_high_water_bytes == 960);
}

static void begin_twice(void)
{
    scratch_begin(&scratch);
    scratch_begin(&scratch);
}

static void end_without_begin(void)
{
    scratch_end(&scratch);
}

static void take_outside_a_job(void)
{
    (void)scratch_take(&scratch, 1);
}

static void misuse_is_caught(void)
{
    scratch_open(&scratch, memory, CAPACITY_BYTES);
    CU_ASSERT(harness_aborts(begin_twice));
    CU_ASSERT(harness_aborts(end_without_begin));
    CU_ASSERT(harness_aborts(take_outside_a_job));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(pieces_are_aligned_and_apart),
        CASE(what_does_not_fit_is_refused_and_counted),
        CASE(misuse_is_caught),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "pools/scratch", cases, NULL);
}
