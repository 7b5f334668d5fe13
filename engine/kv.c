/* kv: who holds which KV page.
 *
 * Always true between calls: a page is in exactly one of three states: free (in the pool), held (holders > 0),
 * evictable (a node, no holder); the three counts add up to page_count. Pages are the pool's elements, by index.
 */
#include "engine/kv.h"

#include "pools/pools.h"

#include <assert.h>
#include <string.h>

static struct kv_page *page_at(const struct kv *kv, uint32_t page)
{
    assert(page < kv->page_count);
    return &kv->pages[page];
}

static void put_page(struct kv *kv, uint32_t page)
{
    assert(kv->pages[page].holders == 0);
    kv->pages[page].is_held = 0;
    kv->free_count++;
    pools_put(POOL_KV_PAGE, pools_held(POOL_KV_PAGE, page));
}

void kv_open(struct kv *kv, struct kv_page *pages, uint32_t page_count)
{
    assert(pages != NULL);
    assert(page_count > 0 && page_count <= pools_capacity(POOL_KV_PAGE));
    memset(pages, 0, page_count * sizeof *pages);
    for (uint32_t i = 0; i < page_count; i++) {
        pages[i].node = KV_NONE;
    }
    *kv = (struct kv){.pages = pages, .page_count = page_count, .free_count = page_count};
}

uint32_t kv_take(struct kv *kv)
{
    if (kv->free_count == 0) {
        return KV_NONE;
    }
    slab_handle handle = pools_get(POOL_KV_PAGE);
    if (!slab_is_some(handle)) {
        return KV_NONE;
    }
    struct kv_page *page = page_at(kv, handle.index);
    assert(page->is_held == 0 && page->node == KV_NONE);
    page->is_held = 1;
    page->holders = 1;
    kv->free_count--;
    return handle.index;
}

bool kv_hold(struct kv *kv, uint32_t page)
{
    struct kv_page *held = page_at(kv, page);

    assert(held->is_held == 1);
    assert(held->holders > 0 || held->node != KV_NONE);
    held->holders++;
    if (held->holders > 1) {
        return false;
    }
    assert(kv->evictable_count > 0);
    kv->evictable_count--;
    pools_uncache(POOL_KV_PAGE, pools_held(POOL_KV_PAGE, page));
    return true;
}

bool kv_release(struct kv *kv, uint32_t page)
{
    struct kv_page *held = page_at(kv, page);

    assert(held->is_held == 1);
    assert(held->holders > 0);
    held->holders--;
    if (held->holders > 0) {
        return false;
    }
    kv->gains++;
    if (held->node == KV_NONE) {
        put_page(kv, page);
        return false;
    }
    kv->evictable_count++;
    pools_cache(POOL_KV_PAGE, pools_held(POOL_KV_PAGE, page));
    return true;
}

void kv_keep(struct kv *kv, uint32_t page, uint32_t node)
{
    struct kv_page *held = page_at(kv, page);

    assert(held->holders > 0);
    assert(held->node == KV_NONE && node != KV_NONE);
    held->node = node;
}

void kv_evict(struct kv *kv, uint32_t page)
{
    struct kv_page *held = page_at(kv, page);

    assert(held->holders == 0 && held->node != KV_NONE);
    assert(kv->evictable_count > 0);
    held->node = KV_NONE;
    kv->evictable_count--;
    pools_uncache(POOL_KV_PAGE, pools_held(POOL_KV_PAGE, page));
    put_page(kv, page);
}

void kv_copy(uint32_t to, uint32_t from)
{
    unsigned char *base = pools_base(POOL_KV_PAGE);
    uint64_t stride_bytes = pools_stride_bytes(POOL_KV_PAGE);

    assert(to != from);
    assert(to < pools_capacity(POOL_KV_PAGE) && from < pools_capacity(POOL_KV_PAGE));
    memcpy(base + to * stride_bytes, base + from * stride_bytes, pools_element_bytes(POOL_KV_PAGE));
}

uint32_t kv_available(const struct kv *kv)
{
    assert(kv->free_count + kv->evictable_count <= kv->page_count);
    return kv->free_count + kv->evictable_count;
}
