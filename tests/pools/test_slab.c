/* Properties of pools/slab.c: no element is handed out twice, none is lost, every misuse is caught. */
#include "pools/slab.h"
#include "tests/harness.h"

#include <string.h>

enum { COUNT = 37, ELEMENT_BYTES = 24 };

static _Alignas(64) unsigned char elements[COUNT * ELEMENT_BYTES];
static uint64_t books[COUNT * 2];
static struct slab slab;

static void reopen(void)
{
    slab_open(&slab, elements, ELEMENT_BYTES, COUNT, books);
}

static int all_home(void)
{
    return slab_used(&slab) == 0 && slab.cached_count == 0 && slab.free_count == slab.count ? 0 : 1;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void random_gets_and_puts_never_share_an_element(void)
{
    slab_handle held[COUNT];
    uint32_t held_count = 0;
    uint32_t random = 12345;

    reopen();
    CU_ASSERT(slab_books_bytes(COUNT) <= sizeof books);
    for (int step = 0; step < 100000; step++) {
        if (next_random(&random) % 2 == 0 && held_count < COUNT) {
            slab_handle handle = slab_get(&slab);
            memset(slab_at(&slab, handle), (int)(handle.index + 1), ELEMENT_BYTES);
            held[held_count++] = handle;
        } else if (held_count > 0) {
            uint32_t pick = next_random(&random) % held_count;
            const unsigned char *bytes = slab_at(&slab, held[pick]);
            for (int i = 0; i < ELEMENT_BYTES; i++) {
                CU_ASSERT_FATAL(bytes[i] == (unsigned char)(held[pick].index + 1));
            }
            slab_put(&slab, held[pick]);
            held[pick] = held[--held_count];
        }
        CU_ASSERT_FATAL(slab_used(&slab) == held_count);
    }
    while (held_count > 0) {
        slab_put(&slab, held[--held_count]);
    }
}

static void one_too_many_is_refused_and_counted(void)
{
    slab_handle held[COUNT];

    reopen();
    for (int i = 0; i < COUNT; i++) {
        held[i] = slab_get(&slab);
        CU_ASSERT(slab_is_some(held[i]));
        CU_ASSERT(held[i].index == (uint32_t)i); /* lowest first */
    }
    CU_ASSERT(!slab_is_some(slab_get(&slab)));
    CU_ASSERT(slab.refused_count == 1);
    CU_ASSERT(slab.used_high_water == COUNT);
    for (int i = 0; i < COUNT; i++) {
        slab_put(&slab, held[i]);
    }
    CU_ASSERT(slab.used_high_water == COUNT);
}

static void the_most_recent_element_is_reused_first(void)
{
    reopen();
    slab_handle first = slab_get(&slab);
    slab_handle second = slab_get(&slab);
    slab_put(&slab, first);
    slab_handle again = slab_get(&slab);
    CU_ASSERT(again.index == first.index);
    CU_ASSERT(again.generation != first.generation);
    slab_put(&slab, again);
    slab_put(&slab, second);
}

static void a_cached_element_is_held_but_not_used(void)
{
    reopen();
    slab_handle handle = slab_get(&slab);
    slab_cache(&slab, handle);
    CU_ASSERT(slab_used(&slab) == 0);
    CU_ASSERT(slab.cached_count == 1);
    CU_ASSERT(slab.free_count == COUNT - 1);
    CU_ASSERT(slab_held(&slab, handle.index).generation == handle.generation);
    slab_uncache(&slab, handle);
    CU_ASSERT(slab_used(&slab) == 1);
    CU_ASSERT(slab.cached_count == 0);
    slab_put(&slab, handle);
}

static void an_empty_slab_refuses(void)
{
    struct slab none;

    slab_open(&none, NULL, 0, 0, NULL);
    CU_ASSERT(!slab_is_some(slab_get(&none)));
    CU_ASSERT(none.refused_count == 1);
    CU_ASSERT(slab_books_bytes(0) == 0);
}

static void elements_given_back_are_overwritten_in_test_runs(void)
{
    reopen();
    slab.fills_on_put = true;
    slab_handle handle = slab_get(&slab);
    unsigned char *bytes = slab_at(&slab, handle);
    memset(bytes, 0, ELEMENT_BYTES);
    slab_put(&slab, handle);
    CU_ASSERT(bytes[0] == 0xA5 && bytes[ELEMENT_BYTES - 1] == 0xA5);
}

static void strides_keep_alignment_and_saturate(void)
{
    CU_ASSERT(slab_stride_bytes(1) == 8);
    CU_ASSERT(slab_stride_bytes(24) == 24);
    CU_ASSERT(slab_stride_bytes(63) == 64);
    CU_ASSERT(slab_stride_bytes(65) == 128);
    CU_ASSERT(slab_stride_bytes(917504) == 917504);
    CU_ASSERT(slab_stride_bytes(UINT64_MAX) == UINT64_MAX);
}

static void put_twice(void)
{
    slab_handle handle = slab_get(&slab);
    slab_put(&slab, handle);
    slab_put(&slab, handle);
}

static void use_after_put(void)
{
    slab_handle handle = slab_get(&slab);
    slab_put(&slab, handle);
    (void)slab_get(&slab); /* the same element, a new generation */
    (void)slab_at(&slab, handle);
}

static void put_of_nothing(void)
{
    slab_put(&slab, SLAB_NONE);
}

static void put_of_a_cached_one(void)
{
    slab_handle handle = slab_get(&slab);
    slab_cache(&slab, handle);
    slab_put(&slab, handle);
}

static void caching_twice(void)
{
    slab_handle handle = slab_get(&slab);
    slab_cache(&slab, handle);
    slab_cache(&slab, handle);
}

static void index_out_of_range(void)
{
    (void)slab_held(&slab, COUNT);
}

static void index_of_a_free_one(void)
{
    (void)slab_held(&slab, 0);
}

static void misuse_is_caught(void)
{
    reopen();
    CU_ASSERT(harness_aborts(put_twice));
    CU_ASSERT(harness_aborts(use_after_put));
    CU_ASSERT(harness_aborts(put_of_nothing));
    CU_ASSERT(harness_aborts(put_of_a_cached_one));
    CU_ASSERT(harness_aborts(caching_twice));
    CU_ASSERT(harness_aborts(index_out_of_range));
    CU_ASSERT(harness_aborts(index_of_a_free_one));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(random_gets_and_puts_never_share_an_element),
        CASE(one_too_many_is_refused_and_counted),
        CASE(the_most_recent_element_is_reused_first),
        CASE(a_cached_element_is_held_but_not_used),
        CASE(an_empty_slab_refuses),
        CASE(elements_given_back_are_overwritten_in_test_runs),
        CASE(strides_keep_alignment_and_saturate),
        CASE(misuse_is_caught),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "pools/slab", cases, all_home);
}
