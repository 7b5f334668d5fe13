/* Properties of engine/prefix.c: it finds exactly the longest beginning that was put in, by tokens and pictures, and
 * evicts the least recently used end first. */
#include "engine/prefix.h"
#include "tests/engine/engine_pools.h"
#include "tests/harness.h"

#include <string.h>

enum { PAGES = 40, TOKENS = 128 };

static struct kv kv;
static struct prefix prefix;
static uint32_t pages[TOKENS / KV_PAGE_TOKENS];

static void open_prefix(void)
{
    kv_open(&kv, pools_base(POOL_KV_META), PAGES);
    prefix_open(&prefix, &kv, true);
}

static int is_home(void)
{
    prefix_flush(&prefix);
    prefix_check(&prefix);
    return (int)engine_pools_held();
}

static struct prefix_key key_of(const int32_t *ids, uint32_t count)
{
    return (struct prefix_key){.ids = ids, .count = count};
}

/* Puts a sequence in as a request does: what is there already is used, the rest is offered page by page. */
static void put_in(const struct prefix_key *key)
{
    struct prefix_hit hit;
    uint32_t list[TOKENS / KV_PAGE_TOKENS], count, parent;

    prefix_match(&prefix, key, key->count, list, &hit);
    count = hit.page_count;
    parent = hit.node;
    for (uint32_t first = count * KV_PAGE_TOKENS; first < key->count; first += KV_PAGE_TOKENS) {
        uint32_t rest = key->count - first < KV_PAGE_TOKENS ? key->count - first : KV_PAGE_TOKENS;
        list[count] = prefix_take(&prefix);
        CU_ASSERT_FATAL(list[count] != KV_NONE);
        enum prefix_outcome outcome = prefix_insert(&prefix, key, first, rest, parent, &list[count], &parent);
        CU_ASSERT_FATAL(outcome != PREFIX_REFUSED);
        count++;
    }
    prefix_release_list(&prefix, list, count);
    prefix_check(&prefix);
}

/* Tokens of `key` that are found, part of a page included. */
static uint32_t found_tokens(const struct prefix_key *key)
{
    struct prefix_hit hit;
    prefix_match(&prefix, key, key->count, pages, &hit);
    prefix_release_list(&prefix, pages, hit.page_count);
    CU_ASSERT((hit.partial_node == KV_NONE) == (hit.partial_tokens == 0));
    return hit.page_count * KV_PAGE_TOKENS + hit.partial_tokens;
}

static void count_up(int32_t *ids, uint32_t count, int32_t from)
{
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = from + (int32_t)i;
    }
}

static void a_repeat_is_found_whole_and_a_longer_one_up_to_its_end(void)
{
    int32_t ids[TOKENS];
    open_prefix();
    count_up(ids, TOKENS, 1000);
    struct prefix_key short_key = key_of(ids, 37), long_key = key_of(ids, 100);
    put_in(&short_key);
    CU_ASSERT_EQUAL(found_tokens(&short_key), 37);
    CU_ASSERT_EQUAL(found_tokens(&long_key), 37);
    put_in(&long_key);
    CU_ASSERT_EQUAL(found_tokens(&long_key), 100);
    ids[40] = 1; /* inside a whole page */
    CU_ASSERT_EQUAL(found_tokens(&long_key), 40);
    ids[0] = 1;
    CU_ASSERT_EQUAL(found_tokens(&long_key), 0);
}

static void the_longest_common_beginning_is_found_among_random_sequences(void)
{
    static int32_t sequences[24][TOKENS];
    uint32_t counts[24], random = 3, wrong = 0;

    for (int round = 0; round < 60; round++) {
        uint32_t put_count = 0, needed = 0;
        open_prefix();
        for (uint32_t s = 0; s < 24; s++) {
            for (uint32_t i = 0; i < TOKENS; i++) {
                random = random * 1664525u + 1013904223u;
                sequences[s][i] = random >> 24 < 8 ? 2 : 1; /* few ids: long common beginnings */
            }
            counts[s] = 1 + (random >> 16) % 60;
        }
        for (; put_count < 24 && needed + 5 < PAGES; put_count++) { /* never so many that something is evicted */
            needed += (counts[put_count] + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
            struct prefix_key key = key_of(sequences[put_count], counts[put_count]);
            put_in(&key);
        }
        for (uint32_t s = 0; s < 24; s++) {
            uint32_t longest = 0;
            for (uint32_t other = 0; other < put_count; other++) {
                uint32_t common = 0;
                while (common < counts[s] && common < counts[other] &&
                       sequences[s][common] == sequences[other][common]) {
                    common++;
                }
                longest = common > longest ? common : longest;
            }
            struct prefix_key key = key_of(sequences[s], counts[s]);
            wrong += found_tokens(&key) != longest;
        }
        prefix_flush(&prefix);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void pictures_count_as_their_digest_and_grid(void)
{
    int32_t ids[TOKENS];
    struct picture pictures[2] = {engine_pools_picture(1, 10, 30), engine_pools_picture(2, 50, 8)};
    open_prefix();
    count_up(ids, TOKENS, 1000);
    for (uint32_t i = 0; i < 58; i++) {
        ids[i] = i >= 10 && i != 40 && i < 58 ? 9 : ids[i];
    }
    struct prefix_key key = {.ids = ids, .count = 90, .pictures = pictures, .picture_count = 2};
    put_in(&key);
    CU_ASSERT_EQUAL(found_tokens(&key), 90);
    pictures[1].digest[31] = 1;
    CU_ASSERT_EQUAL(found_tokens(&key), 50);
    pictures[0].grid_h = 4;
    CU_ASSERT_EQUAL(found_tokens(&key), 10);
    pictures[0].grid_h = 2;
    pictures[0].first_token = 9; /* the same ids, the picture one token earlier */
    CU_ASSERT_EQUAL(found_tokens(&key), 9);
    key.picture_count = 0;
    CU_ASSERT_EQUAL(found_tokens(&key), 10);
}

static void the_same_page_twice_becomes_one(void)
{
    int32_t ids[TOKENS];
    uint32_t first, second, node, other;
    open_prefix();
    count_up(ids, TOKENS, 5);
    struct prefix_key key = key_of(ids, KV_PAGE_TOKENS);
    first = prefix_take(&prefix);
    second = prefix_take(&prefix);
    uint32_t kept = first;
    CU_ASSERT_EQUAL(prefix_insert(&prefix, &key, 0, KV_PAGE_TOKENS, KV_NONE, &first, &node), PREFIX_TAKEN);
    CU_ASSERT_EQUAL(prefix_insert(&prefix, &key, 0, KV_PAGE_TOKENS, KV_NONE, &second, &other), PREFIX_MERGED);
    CU_ASSERT(second == kept && other == node && kv.pages[kept].holders == 2);
    CU_ASSERT_EQUAL(kv_available(&kv), PAGES - 1);
    prefix_release(&prefix, first);
    prefix_release(&prefix, second);
}

static void the_least_recently_used_end_goes_first(void)
{
    int32_t ids[3][TOKENS];
    open_prefix();
    for (int i = 0; i < 3; i++) {
        count_up(ids[i], TOKENS, 1000 * i);
        struct prefix_key key = key_of(ids[i], TOKENS);
        put_in(&key);
    }
    struct prefix_key first = key_of(ids[0], TOKENS), second = key_of(ids[1], TOKENS);
    (void)found_tokens(&first); /* used again */
    uint32_t count = 0;
    while (kv.free_count > 0) {
        count += prefix_take(&prefix) != KV_NONE;
    }
    for (int i = 0; i < 3; i++) {
        count += prefix_take(&prefix) != KV_NONE;
        prefix_check(&prefix);
    }
    CU_ASSERT_EQUAL(prefix.evicted_count, 3);
    CU_ASSERT_EQUAL(found_tokens(&second), TOKENS - 3 * KV_PAGE_TOKENS);
    CU_ASSERT_EQUAL(found_tokens(&first), TOKENS);
    while (prefix_take(&prefix) != KV_NONE) {
        count++; /* held pages alone stop it */
    }
    CU_ASSERT_EQUAL(kv_available(&kv), 0);
    for (uint32_t i = 0; i < PAGES; i++) {
        prefix_release(&prefix, i);
    }
    CU_ASSERT_EQUAL(count, PAGES);
}

static void what_is_held_is_never_evicted(void)
{
    int32_t ids[TOKENS];
    struct prefix_hit hit;
    open_prefix();
    count_up(ids, TOKENS, 1);
    struct prefix_key key = key_of(ids, TOKENS);
    put_in(&key);
    prefix_match(&prefix, &key, TOKENS, pages, &hit);
    uint32_t taken = 0, held[PAGES];
    while ((held[taken] = prefix_take(&prefix)) != KV_NONE) {
        taken++;
    }
    CU_ASSERT_EQUAL(taken, PAGES - hit.page_count);
    prefix_release_list(&prefix, held, taken);
    prefix_release_list(&prefix, pages, hit.page_count);
    CU_ASSERT_EQUAL(found_tokens(&key), TOKENS);
}

static void without_nodes_or_switched_off_pages_stay_private(void)
{
    int32_t ids[TOKENS];
    uint32_t node = 0;
    open_prefix();
    count_up(ids, TOKENS, 1);
    struct prefix_key key = key_of(ids, KV_PAGE_TOKENS);
    uint32_t page = prefix_take(&prefix);
    pools_refuse(POOL_PREFIX, 0, POOLS_REFUSE_ONCE);
    CU_ASSERT_EQUAL(prefix_insert(&prefix, &key, 0, KV_PAGE_TOKENS, KV_NONE, &page, &node), PREFIX_REFUSED);
    CU_ASSERT_EQUAL(node, KV_NONE);
    prefix.is_on = false;
    CU_ASSERT_EQUAL(prefix_insert(&prefix, &key, 0, KV_PAGE_TOKENS, KV_NONE, &page, &node), PREFIX_REFUSED);
    prefix_release(&prefix, page);
    CU_ASSERT_EQUAL(kv_available(&kv), PAGES);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_repeat_is_found_whole_and_a_longer_one_up_to_its_end),
        CASE(the_longest_common_beginning_is_found_among_random_sequences),
        CASE(pictures_count_as_their_digest_and_grid),
        CASE(the_same_page_twice_becomes_one),
        CASE(the_least_recently_used_end_goes_first),
        CASE(what_is_held_is_never_evicted),
        CASE(without_nodes_or_switched_off_pages_stay_private),
        {NULL, NULL},
    };
    engine_pools_open(&(struct engine_pools){
        .kv_pages = PAGES, .running_requests = 1, .requests = 2, .context_tokens = TOKENS, .picture_pages = 1});
    return harness_run(argc, argv, "engine/prefix", cases, is_home);
}
