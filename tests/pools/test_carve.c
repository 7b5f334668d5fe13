/* Properties of pools/carve.c: counting and placing agree to the byte, blocks do not overlap, overflow is never a small
 * sum. */
#include "pools/carve.h"
#include "tests/harness.h"

#include <string.h>

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* A series of blocks and gaps that depends on the seed only. */
static void lay(struct carve *carve, uint64_t seed, unsigned char **blocks, uint64_t *bytes, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t offset_bytes;
        uint64_t element_bytes = next_random(&seed) % 5000;
        uint64_t elements = next_random(&seed) % 40;
        blocks[i] = carve_take(carve, element_bytes, elements, &offset_bytes);
        bytes[i] = element_bytes * elements;
        if (next_random(&seed) % 4 == 0) {
            (void)carve_gap(carve);
        }
    }
    carve_finish(carve);
}

static void counting_and_placing_end_at_the_same_byte(void)
{
    enum { BLOCKS = 50 };
    unsigned char *blocks[BLOCKS];
    uint64_t bytes[BLOCKS];

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct carve counted, placed;
        carve_count(&counted);
        lay(&counted, seed, blocks, bytes, BLOCKS);
        CU_ASSERT(blocks[0] == NULL);
        CU_ASSERT(counted.offset_bytes % CARVE_PAGE_BYTES == 0);

        unsigned char *range = harness_memory(counted.offset_bytes);
        carve_place(&placed, range, counted.offset_bytes);
        lay(&placed, seed, blocks, bytes, BLOCKS);
        CU_ASSERT(placed.offset_bytes == counted.offset_bytes);
        CU_ASSERT(carve_memory_bytes(&placed) == carve_memory_bytes(&counted));

        unsigned char *end = range;
        for (int i = 0; i < BLOCKS; i++) {
            if (bytes[i] == 0) {
                CU_ASSERT(blocks[i] == NULL);
                continue;
            }
            CU_ASSERT(blocks[i] >= end);
            CU_ASSERT((uintptr_t)blocks[i] % (bytes[i] < CARVE_BIG_BYTES ? CARVE_LINE_BYTES : CARVE_PAGE_BYTES) == 0);
            end = blocks[i] + bytes[i];
        }
        CU_ASSERT(end <= range + counted.offset_bytes);
    }
}

static void gaps_are_no_memory(void)
{
    struct carve carve;
    uint64_t offset_bytes;

    carve_count(&carve);
    (void)carve_take(&carve, 1, 1, &offset_bytes);
    CU_ASSERT(carve_gap(&carve) == NULL);
    carve_finish(&carve);
    CU_ASSERT(carve.offset_bytes == 2 * CARVE_PAGE_BYTES);
    CU_ASSERT(carve_memory_bytes(&carve) == CARVE_PAGE_BYTES);
}

static void overflow_sticks(void)
{
    struct carve carve;
    uint64_t offset_bytes;

    carve_count(&carve);
    (void)carve_take(&carve, UINT64_MAX / 2, 3, &offset_bytes);
    CU_ASSERT(carve.has_overflowed);
    (void)carve_take(&carve, 1, 1, &offset_bytes);
    CU_ASSERT(carve.has_overflowed);
    CU_ASSERT(carve_memory_bytes(&carve) == UINT64_MAX);

    carve_count(&carve);
    (void)carve_take(&carve, UINT64_MAX - 70, 1, &offset_bytes);
    CU_ASSERT(!carve.has_overflowed);
    (void)carve_take(&carve, 100, 1, &offset_bytes);
    CU_ASSERT(carve.has_overflowed);
}

static unsigned char *small_range;

static void more_than_the_range(void)
{
    struct carve carve;
    uint64_t offset_bytes;

    carve_place(&carve, small_range, CARVE_PAGE_BYTES);
    (void)carve_take(&carve, CARVE_PAGE_BYTES + 1, 1, &offset_bytes);
}

static void passing_the_range_is_caught(void)
{
    small_range = harness_memory(CARVE_PAGE_BYTES);
    CU_ASSERT(harness_aborts(more_than_the_range));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(counting_and_placing_end_at_the_same_byte),
        CASE(gaps_are_no_memory),
        CASE(overflow_sticks),
        CASE(passing_the_range_is_caught),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "pools/carve", cases, NULL);
}
