/* mm: encoded pictures in MM pages, and the cache of them.
 *
 * Always true between calls: no two used features have the same digest and grid; a used feature's pages are held in the
 * pool.
 */
#include "engine/mm.h"

#include "config.h"
#include "pools/pools.h"

#include <assert.h>
#include <string.h>

uint64_t mm_feature_bytes(uint32_t picture_pages)
{
    return sizeof(struct mm_feature) + (uint64_t)picture_pages * sizeof(uint32_t);
}

struct mm_feature *mm_at(uint32_t feature)
{
    assert(feature < pools_capacity(POOL_FEATURE));
    return (struct mm_feature *)((unsigned char *)pools_base(POOL_FEATURE) +
                                 feature * pools_stride_bytes(POOL_FEATURE));
}

void mm_open(struct mm *mm, uint32_t picture_pages)
{
    *mm = (struct mm){.picture_pages = picture_pages,
                      .page_count = pools_capacity(POOL_MM_PAGE),
                      .feature_count = pools_capacity(POOL_FEATURE),
                      .oldest = MM_NONE,
                      .newest = MM_NONE};
    assert(picture_pages == 0 || pools_element_bytes(POOL_FEATURE) >= mm_feature_bytes(picture_pages));
    assert(picture_pages == 0 || mm->page_count >= 2 * picture_pages);
    mm->free_pages = mm->page_count;
    mm->free_features = mm->feature_count;
    mm->keeps = mm->page_count > 2 * picture_pages;
    for (uint32_t i = 0; i < mm->feature_count; i++) {
        mm_at(i)->is_used = 0;
    }
}

/* Marks the feature and its pages as evictable, newest last. */
static void list_append(struct mm *mm, uint32_t index)
{
    struct mm_feature *feature = mm_at(index);

    feature->older = mm->newest;
    feature->newer = MM_NONE;
    if (mm->newest == MM_NONE) {
        mm->oldest = index;
    } else {
        mm_at(mm->newest)->newer = index;
    }
    mm->newest = index;
    mm->evictable_features++;
    mm->evictable_pages += feature->page_count;
    pools_cache(POOL_FEATURE, pools_held(POOL_FEATURE, index));
    for (uint32_t i = 0; i < feature->page_count; i++) {
        pools_cache(POOL_MM_PAGE, pools_held(POOL_MM_PAGE, feature->pages[i]));
    }
}

static void list_remove(struct mm *mm, uint32_t index)
{
    struct mm_feature *feature = mm_at(index);

    if (feature->older == MM_NONE) {
        assert(mm->oldest == index);
        mm->oldest = feature->newer;
    } else {
        mm_at(feature->older)->newer = feature->newer;
    }
    if (feature->newer == MM_NONE) {
        assert(mm->newest == index);
        mm->newest = feature->older;
    } else {
        mm_at(feature->newer)->older = feature->older;
    }
    mm->evictable_features--;
    mm->evictable_pages -= feature->page_count;
    pools_uncache(POOL_FEATURE, pools_held(POOL_FEATURE, index));
    for (uint32_t i = 0; i < feature->page_count; i++) {
        pools_uncache(POOL_MM_PAGE, pools_held(POOL_MM_PAGE, feature->pages[i]));
    }
}

static void put_feature(struct mm *mm, uint32_t index)
{
    struct mm_feature *feature = mm_at(index);

    assert(feature->is_used == 1 && feature->holders == 0);
    for (uint32_t i = 0; i < feature->page_count; i++) {
        pools_put(POOL_MM_PAGE, pools_held(POOL_MM_PAGE, feature->pages[i]));
    }
    mm->free_pages += feature->page_count;
    mm->free_features++;
    feature->is_used = 0;
    pools_put(POOL_FEATURE, pools_held(POOL_FEATURE, index));
}

static void evict_oldest(struct mm *mm)
{
    uint32_t index = mm->oldest;

    assert(index != MM_NONE);
    list_remove(mm, index);
    put_feature(mm, index);
    mm->evicted_count++;
}

static uint32_t find(const struct mm *mm, const struct picture *picture)
{
    for (uint32_t i = 0; i < mm->feature_count; i++) {
        const struct mm_feature *feature = mm_at(i);
        if (feature->is_used == 1 && feature->grid_h == picture->grid_h && feature->grid_w == picture->grid_w &&
            memcmp(feature->digest, picture->digest, sizeof feature->digest) == 0) {
            assert(feature->token_count == picture->token_count);
            return i;
        }
    }
    return MM_NONE;
}

/* True if taking `pages` of what is free or evictable, and a feature, leaves enough for the eldest. */
static bool may_take(const struct mm *mm, uint32_t pages, bool is_eldest)
{
    uint64_t kept_pages = is_eldest ? 0 : mm->picture_pages;
    uint32_t kept_features = is_eldest ? 0 : 1;

    return mm->free_pages + mm->evictable_pages >= pages + kept_pages &&
           mm->free_features + mm->evictable_features >= 1 + kept_features;
}

/* A new feature with its pages, all or nothing. MM_NONE when a pool refuses. */
static uint32_t make_feature(struct mm *mm, const struct picture *picture, uint32_t page_count)
{
    slab_handle handle = pools_get(POOL_FEATURE);

    if (!slab_is_some(handle)) {
        return MM_NONE;
    }
    struct mm_feature *feature = mm_at(handle.index);
    *feature = (struct mm_feature){.grid_h = picture->grid_h,
                                   .grid_w = picture->grid_w,
                                   .token_count = picture->token_count,
                                   .state = MM_WANTED,
                                   .holders = 0,
                                   .is_used = 1,
                                   .older = MM_NONE,
                                   .newer = MM_NONE};
    memcpy(feature->digest, picture->digest, sizeof feature->digest);
    mm->free_features--;
    for (; feature->page_count < page_count; feature->page_count++) {
        slab_handle page = pools_get(POOL_MM_PAGE);
        if (!slab_is_some(page)) {
            put_feature(mm, handle.index);
            return MM_NONE;
        }
        feature->pages[feature->page_count] = page.index;
        mm->free_pages--;
    }
    return handle.index;
}

bool mm_acquire(struct mm *mm, const struct picture *picture, bool is_eldest, uint32_t *index)
{
    uint32_t page_count = (picture->token_count + MM_PAGE_TOKENS - 1) / MM_PAGE_TOKENS;
    uint32_t found = find(mm, picture);

    assert(page_count > 0 && page_count <= mm->picture_pages);
    if (found == MM_NONE) {
        if (!may_take(mm, page_count, is_eldest)) {
            return false;
        }
        while (mm->free_pages < page_count || mm->free_features == 0) {
            evict_oldest(mm);
        }
        found = make_feature(mm, picture, page_count);
        if (found == MM_NONE) {
            return false;
        }
    } else if (mm_at(found)->holders == 0 && mm_at(found)->state == MM_READY) {
        if (!may_take(mm, page_count, is_eldest)) {
            return false;
        }
        list_remove(mm, found);
        mm->hit_count++;
    } else {
        mm->hit_count++;
    }
    mm_at(found)->holders++;
    *index = found;
    return true;
}

/* What becomes of a feature that nobody holds and nobody works on. True: gone. */
static bool retire(struct mm *mm, uint32_t index)
{
    if (mm_at(index)->state == MM_READY && mm->keeps) {
        list_append(mm, index);
        return false;
    }
    put_feature(mm, index);
    return true;
}

bool mm_release(struct mm *mm, uint32_t index)
{
    struct mm_feature *feature = mm_at(index);

    assert(feature->is_used == 1);
    assert(feature->holders > 0);
    feature->holders--;
    if (feature->holders > 0 || feature->state == MM_DECODING || feature->state == MM_ENCODING) {
        return false;
    }
    return retire(mm, index);
}

bool mm_settle(struct mm *mm, uint32_t index, enum mm_state state)
{
    struct mm_feature *feature = mm_at(index);

    assert(feature->is_used == 1);
    assert(feature->state == MM_DECODING || feature->state == MM_ENCODING);
    assert(state == MM_WANTED || state == MM_DECODED || state == MM_READY);
    feature->state = state;
    return feature->holders == 0 && retire(mm, index);
}

void mm_flush(struct mm *mm)
{
    while (mm->oldest != MM_NONE) {
        evict_oldest(mm);
    }
    assert(mm->evictable_pages == 0 && mm->evictable_features == 0);
}

void mm_check(const struct mm *mm)
{
    uint32_t used_pages = 0, used_features = 0, evictable_features = 0;

    for (uint32_t i = 0; i < mm->feature_count; i++) {
        const struct mm_feature *feature = mm_at(i);
        if (feature->is_used == 1) {
            used_features++;
            used_pages += feature->page_count;
            evictable_features += feature->holders == 0 && feature->state == MM_READY;
        }
    }
    assert(used_features + mm->free_features == mm->feature_count);
    assert(used_pages + mm->free_pages == mm->page_count);
    assert(evictable_features == mm->evictable_features);
    assert(used_pages == pools_used(POOL_MM_PAGE) + pools_cached(POOL_MM_PAGE));
}
