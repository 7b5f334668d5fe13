/* Properties of engine/kv.c: every page is free, held or evictable; nothing is lost; misuse is caught. */
#include "engine/kv.h"
#include "tests/engine/engine_pools.h"
#include "tests/harness.h"

enum { PAGES = 12 };

static struct kv kv;

static void open_kv(void)
{
    kv_open(&kv, pools_base(POOL_KV_META), PAGES);
}

static int is_home(void)
{
    return (int)engine_pools_held();
}

static void pages_are_conserved_under_random_use(void)
{
    uint32_t holders[PAGES] = {0}, kept[PAGES] = {0}, random = 7;

    open_kv();
    for (int step = 0; step < 100000; step++) {
        random = random * 1664525u + 1013904223u;
        uint32_t page = (random >> 8) % PAGES, action = (random >> 24) % 5;
        if (action == 0) {
            page = kv_take(&kv);
            CU_ASSERT_FATAL(page == KV_NONE || (holders[page] == 0 && kept[page] == 0));
            if (page != KV_NONE) {
                holders[page] = 1;
            }
        } else if (action == 1 && (holders[page] > 0 || kept[page] > 0)) {
            CU_ASSERT_FATAL(kv_hold(&kv, page) == (holders[page] == 0));
            holders[page]++;
        } else if (action == 2 && holders[page] > 0) {
            holders[page]--;
            CU_ASSERT_FATAL(kv_release(&kv, page) == (holders[page] == 0 && kept[page] > 0));
        } else if (action == 3 && holders[page] > 0 && kept[page] == 0) {
            kv_keep(&kv, page, page + 100);
            kept[page] = 1;
        } else if (action == 4 && holders[page] == 0 && kept[page] > 0) {
            kv_evict(&kv, page);
            kept[page] = 0;
        }
        uint32_t held = 0, evictable = 0;
        for (uint32_t i = 0; i < PAGES; i++) {
            held += holders[i] > 0;
            evictable += holders[i] == 0 && kept[i] > 0;
        }
        CU_ASSERT_FATAL(kv_available(&kv) + held == PAGES && kv.evictable_count == evictable);
        CU_ASSERT_FATAL(pools_used(POOL_KV_PAGE) == held && pools_cached(POOL_KV_PAGE) == evictable);
    }
    for (uint32_t i = 0; i < PAGES; i++) {
        for (; holders[i] > 0; holders[i]--) {
            (void)kv_release(&kv, i);
        }
        if (kept[i] > 0) {
            kv_evict(&kv, i);
        }
    }
}

static void a_refused_page_is_no_page(void)
{
    open_kv();
    pools_refuse(POOL_KV_PAGE, 1, POOLS_REFUSE_ONCE);
    uint32_t first = kv_take(&kv);
    CU_ASSERT_EQUAL(kv_take(&kv), KV_NONE);
    CU_ASSERT_EQUAL(kv_available(&kv), PAGES - 1);
    uint32_t third = kv_take(&kv);
    CU_ASSERT(first != KV_NONE && third != KV_NONE && first != third);
    (void)kv_release(&kv, first);
    (void)kv_release(&kv, third);
}

static void a_copy_has_the_same_tokens(void)
{
    open_kv();
    uint32_t from = kv_take(&kv), to = kv_take(&kv);
    uint64_t *a = pools_at(POOL_KV_PAGE, pools_held(POOL_KV_PAGE, from));
    uint64_t *b = pools_at(POOL_KV_PAGE, pools_held(POOL_KV_PAGE, to));
    for (uint64_t i = 0; i < KV_PAGE_TOKENS; i++) {
        a[i] = i + 1;
        b[i] = 0;
    }
    kv_copy(to, from);
    for (uint64_t i = 0; i < KV_PAGE_TOKENS; i++) {
        CU_ASSERT_EQUAL(b[i], i + 1);
    }
    (void)kv_release(&kv, from);
    (void)kv_release(&kv, to);
}

static void release_twice(void)
{
    open_kv();
    uint32_t page = kv_take(&kv);
    (void)kv_release(&kv, page);
    (void)kv_release(&kv, page);
}

static void hold_a_free_page(void)
{
    open_kv();
    (void)kv_hold(&kv, 3);
}

static void evict_a_held_page(void)
{
    open_kv();
    uint32_t page = kv_take(&kv);
    kv_keep(&kv, page, 1);
    kv_evict(&kv, page);
}

static void misuse_is_caught(void)
{
    CU_ASSERT(harness_aborts(release_twice));
    CU_ASSERT(harness_aborts(hold_a_free_page));
    CU_ASSERT(harness_aborts(evict_a_held_page));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(pages_are_conserved_under_random_use),
        CASE(a_refused_page_is_no_page),
        CASE(a_copy_has_the_same_tokens),
        CASE(misuse_is_caught),
        {NULL, NULL},
    };
    engine_pools_open(&(struct engine_pools){
        .kv_pages = PAGES, .running_requests = 1, .requests = 2, .context_tokens = 64, .picture_pages = 1});
    return harness_run(argc, argv, "engine/kv", cases, is_home);
}
