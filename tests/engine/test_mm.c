/* Properties of engine/mm.c: one feature a picture, whatever many wait for it; the eldest always finds room. */
#include "engine/mm.h"
#include "config.h"
#include "tests/engine/engine_pools.h"
#include "tests/harness.h"

enum { PICTURE_PAGES = 3, CACHE_PAGES = 4, PAGES = 2 * PICTURE_PAGES + CACHE_PAGES };

static struct mm mm;

static int is_home(void)
{
    mm_flush(&mm);
    mm_check(&mm);
    return (int)engine_pools_held();
}

static struct picture picture_of(unsigned char digest, uint32_t pages)
{
    return engine_pools_picture(digest, 0, pages * MM_PAGE_TOKENS - 5);
}

/* What the worker and the tower do. */
static void encode(uint32_t feature)
{
    mm_at(feature)->state = MM_DECODING;
    (void)mm_settle(&mm, feature, MM_DECODED);
    mm_at(feature)->state = MM_ENCODING;
    (void)mm_settle(&mm, feature, MM_READY);
}

static void all_who_want_a_picture_hold_one_feature(void)
{
    struct picture picture = picture_of(1, 2);
    uint32_t first, second;
    mm_open(&mm, PICTURE_PAGES);
    CU_ASSERT(mm_acquire(&mm, &picture, true, &first));
    CU_ASSERT(mm_acquire(&mm, &picture, false, &second));
    CU_ASSERT_EQUAL(first, second);
    CU_ASSERT_EQUAL(mm.free_pages, PAGES - 2);
    encode(first);
    CU_ASSERT_FALSE(mm_release(&mm, first));
    CU_ASSERT_EQUAL(mm.evictable_pages, 0);
    CU_ASSERT_FALSE(mm_release(&mm, second));
    CU_ASSERT_EQUAL(mm.evictable_pages, 2);
    CU_ASSERT(mm_acquire(&mm, &picture, true, &second)); /* still there, still encoded */
    CU_ASSERT(second == first && mm_at(second)->state == MM_READY);
    CU_ASSERT_FALSE(mm_release(&mm, second));
}

static void digest_and_grid_both_count(void)
{
    struct picture a = picture_of(1, 1), b = picture_of(2, 1), c = a;
    uint32_t first = 0, second = 0, third = 0;
    c.grid_h *= 2;
    mm_open(&mm, PICTURE_PAGES);
    CU_ASSERT_FATAL(mm_acquire(&mm, &a, true, &first));
    CU_ASSERT_FATAL(mm_acquire(&mm, &b, true, &second));
    CU_ASSERT_FATAL(mm_acquire(&mm, &c, true, &third));
    CU_ASSERT(first != second && second != third && first != third);
    CU_ASSERT(mm_release(&mm, first) && mm_release(&mm, second) && mm_release(&mm, third)); /* never encoded: gone */
}

static void the_younger_leave_a_whole_picture_for_the_eldest(void)
{
    uint32_t features[PAGES], count = 0, eldest;
    mm_open(&mm, PICTURE_PAGES);
    for (int i = 0; i < PAGES; i++) {
        struct picture small = picture_of((unsigned char)i, 1);
        count += mm_acquire(&mm, &small, false, &features[count]);
    }
    CU_ASSERT(count > 0 && mm.free_pages >= PICTURE_PAGES);
    struct picture large = picture_of(100, PICTURE_PAGES), next = picture_of(101, 1);
    CU_ASSERT_FALSE(mm_acquire(&mm, &large, false, &eldest));
    CU_ASSERT(mm_acquire(&mm, &large, true, &eldest));
    CU_ASSERT_FALSE(mm_acquire(&mm, &next, false, &features[count]));
    CU_ASSERT(mm_release(&mm, eldest));
    while (count > 0) {
        CU_ASSERT(mm_release(&mm, features[--count]));
    }
}

static void the_least_recent_picture_makes_room(void)
{
    uint32_t feature;
    mm_open(&mm, PICTURE_PAGES);
    for (int i = 0; i < 5; i++) { /* ten pages: all there are */
        struct picture picture = picture_of((unsigned char)i, 2);
        CU_ASSERT_FATAL(mm_acquire(&mm, &picture, true, &feature));
        encode(feature);
        (void)mm_release(&mm, feature);
    }
    struct picture first = picture_of(0, 2), fresh = picture_of(50, 2), second = picture_of(1, 2);
    CU_ASSERT(mm_acquire(&mm, &first, true, &feature)); /* used again: the second is the oldest now */
    (void)mm_release(&mm, feature);
    CU_ASSERT(mm_acquire(&mm, &fresh, true, &feature));
    CU_ASSERT_EQUAL(mm.evicted_count, 1);
    CU_ASSERT(mm_release(&mm, feature));
    uint64_t hits = mm.hit_count;
    CU_ASSERT(mm_acquire(&mm, &first, true, &feature));
    CU_ASSERT_EQUAL(mm.hit_count, hits + 1);
    (void)mm_release(&mm, feature);
    CU_ASSERT(mm_acquire(&mm, &second, true, &feature));
    CU_ASSERT_EQUAL(mm_at(feature)->state, MM_WANTED);
    CU_ASSERT(mm_release(&mm, feature));
}

static void without_a_cache_nothing_outlives_its_holders(void)
{
    struct picture picture = picture_of(1, 2);
    uint32_t feature;
    mm_open(&mm, PICTURE_PAGES);
    mm.keeps = false; /* as mm_open finds when the plan has two pictures' pages and none besides */
    CU_ASSERT(mm_acquire(&mm, &picture, true, &feature));
    encode(feature);
    CU_ASSERT(mm_release(&mm, feature));
    CU_ASSERT(mm.evictable_pages == 0 && mm.free_pages == PAGES);
}

static void a_feature_that_is_worked_on_outlives_its_holders(void)
{
    struct picture picture = picture_of(1, 1);
    uint32_t feature, again;
    mm_open(&mm, PICTURE_PAGES);
    CU_ASSERT(mm_acquire(&mm, &picture, true, &feature));
    mm_at(feature)->state = MM_DECODING;
    CU_ASSERT_FALSE(mm_release(&mm, feature));
    CU_ASSERT(mm_acquire(&mm, &picture, true, &again)); /* and is found meanwhile */
    CU_ASSERT_EQUAL(again, feature);
    CU_ASSERT_FALSE(mm_release(&mm, feature));
    CU_ASSERT(mm_settle(&mm, feature, MM_DECODED)); /* gone: nobody wants the pixels */
    CU_ASSERT_EQUAL(mm.free_pages, PAGES);
}

static void a_refusal_of_a_pool_leaves_nothing_taken(void)
{
    static const enum pool pools[] = {POOL_FEATURE, POOL_MM_PAGE, POOL_MM_PAGE};
    struct picture picture = picture_of(1, PICTURE_PAGES);
    uint32_t feature;
    mm_open(&mm, PICTURE_PAGES);
    for (uint64_t i = 0; i < 3; i++) {
        pools_refuse(pools[i], i, POOLS_REFUSE_ONCE);
        CU_ASSERT_FALSE(mm_acquire(&mm, &picture, true, &feature));
        CU_ASSERT(mm.free_pages == PAGES && mm.free_features == mm.feature_count);
        mm_check(&mm);
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(all_who_want_a_picture_hold_one_feature),
        CASE(digest_and_grid_both_count),
        CASE(without_a_cache_nothing_outlives_its_holders),
        CASE(the_younger_leave_a_whole_picture_for_the_eldest),
        CASE(the_least_recent_picture_makes_room),
        CASE(a_feature_that_is_worked_on_outlives_its_holders),
        CASE(a_refusal_of_a_pool_leaves_nothing_taken),
        {NULL, NULL},
    };
    engine_pools_open(&(struct engine_pools){.kv_pages = 4,
                                             .running_requests = 1,
                                             .requests = 2,
                                             .context_tokens = 32,
                                             .picture_pages = PICTURE_PAGES,
                                             .cache_pages = CACHE_PAGES});
    return harness_run(argc, argv, "engine/mm", cases, is_home);
}
