/* test_jmem: a region hands out what it has, aligned and apart, and then NULL. */
#include "engine/image/jmem.h"

#include "tests/harness.h"

#include <stdint.h>
#include <string.h>

static void takes_are_aligned_and_apart(void)
{
    struct jmem region;
    unsigned char *base = harness_memory(4096), *last = NULL;

    jmem_open(&region, base, 4096);
    for (size_t bytes = 1; bytes < 80; bytes++) {
        unsigned char *taken = jmem_take(&region, bytes);
        if (taken == NULL) {
            CU_ASSERT(region.used_bytes + bytes > 4096);
            break;
        }
        CU_ASSERT_EQUAL((uintptr_t)taken % JMEM_ALIGNMENT, 0);
        CU_ASSERT(last == NULL || taken >= last + bytes - 1);
        memset(taken, 1, bytes);
        last = taken;
    }
}

static void the_last_byte_is_given_and_no_more(void)
{
    struct jmem region;

    jmem_open(&region, harness_memory(200), 200);
    CU_ASSERT_PTR_NOT_NULL(jmem_take(&region, 129)); /* uses 192 */
    CU_ASSERT_PTR_NULL(jmem_take(&region, 9));
    CU_ASSERT_PTR_NOT_NULL(jmem_take(&region, 8));
    CU_ASSERT_EQUAL(region.used_bytes, 200);
    CU_ASSERT_PTR_NULL(jmem_take(&region, 1));
    CU_ASSERT_PTR_NULL(jmem_take(&region, SIZE_MAX));
    CU_ASSERT_PTR_NOT_NULL(jmem_take(&region, 0));
}

static void serve_twice(void)
{
    struct jmem region;

    jmem_open(&region, harness_memory(64), 64);
    jmem_serve(&region);
    jmem_serve(&region);
}

static void serving_two_regions_at_once_is_caught(void)
{
    CU_ASSERT_TRUE(harness_aborts(serve_twice));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {CASE(takes_are_aligned_and_apart),
                                                CASE(the_last_byte_is_given_and_no_more),
                                                CASE(serving_two_regions_at_once_is_caught),
                                                {NULL, NULL}};

    return harness_run(argc, argv, "jmem", cases, NULL);
}
