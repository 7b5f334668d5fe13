/* kv: who holds which KV page. A page is held by any number of requests, or kept by the prefix cache, or free. */
#ifndef ENGINE_KV_H
#define ENGINE_KV_H

#include <stdbool.h>
#include <stdint.h>

/* No page, no node. */
static const uint32_t KV_NONE = UINT32_MAX;

/* The books of one page: an element of the pool KV_META. */
struct kv_page {
    uint32_t holders; /* requests whose page list names it */
    uint32_t stamp;   /* admit's mark: the check that saw the page last */
    uint32_t node;    /* of the prefix cache, or KV_NONE */
    uint32_t is_held; /* taken from the pool KV_PAGE */
};

/* Always true: free + evictable + held == page_count, where evictable pages have a node and no holder. */
struct kv {
    struct kv_page *pages; /* [page_count] */
    uint32_t page_count;
    uint32_t free_count;
    uint32_t evictable_count;
    uint32_t stamp; /* of the last check */
    uint64_t gains; /* grows whenever a page becomes free or evictable: what was unsafe may be safe now */
};

/* Lays the books over `pages`, one for each page of the pool KV_PAGE. */
void kv_open(struct kv *kv, struct kv_page *pages, uint32_t page_count);

/* Takes a free page for one holder. KV_NONE when none is free (evictable pages are not). */
uint32_t kv_take(struct kv *kv);

/* One more holder. True if the page was evictable and is not any more. */
bool kv_hold(struct kv *kv, uint32_t page);

/* One holder less. True if the page became evictable. A page without holder and node is free at once. */
bool kv_release(struct kv *kv, uint32_t page);

/* The prefix cache names the held page as `node`'s. */
void kv_keep(struct kv *kv, uint32_t page, uint32_t node);

/* The cache lets go of an evictable page: it is free. */
void kv_evict(struct kv *kv, uint32_t page);

/* Copies the contents of page `from` to page `to`. */
void kv_copy(uint32_t to, uint32_t from);

/* Pages that a request may count on: free, or evictable. */
uint32_t kv_available(const struct kv *kv);

#endif
