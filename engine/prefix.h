/* prefix: the cache of computed KV pages, by the exact tokens and pictures that they hold.
 *
 * A tree of pages. A path from the root is a beginning of some sequence: token ids are compared in full, pictures by
 * their SHA-256 and grid. Inner nodes hold whole pages, leaves may hold less: a request that goes on behind such a
 * beginning copies the page. Pages without a holder are evicted, the least recently used path from its end.
 */
#ifndef ENGINE_PREFIX_H
#define ENGINE_PREFIX_H

#include "config.h"
#include "engine/kv.h"
#include "engine/request.h"

enum { PREFIX_PICTURES_MAX = 6 }; /* in one page: a picture takes at least three tokens, its two marks included */

/* The part of a picture that lies in one page. */
struct prefix_picture {
    unsigned char digest[32];
    uint16_t grid_h, grid_w;
    uint32_t at;     /* token of the page at which it begins */
    uint32_t offset; /* token of the picture at which it begins */
};

/* An element of the pool PREFIX. */
struct prefix_node {
    uint32_t page;
    uint32_t parent, first_child, next_sibling, previous_sibling;
    uint32_t older, newer; /* list of evictable nodes */
    uint32_t token_count;  /* 1 .. KV_PAGE_TOKENS; less than a page only without children */
    uint32_t picture_count;
    int32_t ids[KV_PAGE_TOKENS];
    struct prefix_picture pictures[PREFIX_PICTURES_MAX];
};

/* Always true: a node is on the list of evictable ones exactly if its page has no holder, and stands there before all
 * nodes above it; a path's holders hold every page from the root on. */
struct prefix {
    struct kv *kv;
    uint32_t root_child;     /* first page of any sequence, a list of siblings */
    uint32_t oldest, newest; /* evictable nodes */
    uint64_t evicted_count;  /* so far */
    bool is_on;
};

/* A sequence as the cache sees it. Pictures ascend by first_token. */
struct prefix_key {
    const int32_t *ids;
    uint32_t count;
    const struct picture *pictures;
    uint32_t picture_count;
};

struct prefix_hit {
    uint32_t page_count;     /* whole pages found, held for the caller */
    uint32_t node;           /* of the last of them; KV_NONE: none */
    uint32_t partial_node;   /* its page goes on for partial_tokens more; not held; KV_NONE: none */
    uint32_t partial_tokens; /* 1 .. KV_PAGE_TOKENS */
};

/* What became of a page that was offered. */
enum prefix_outcome {
    PREFIX_TAKEN,  /* the cache names it now */
    PREFIX_MERGED, /* the cache had it already: the caller holds that one instead and his own is free */
    PREFIX_REFUSED /* no node, or the cache is off: the page stays the caller's alone */
};

void prefix_open(struct prefix *prefix, struct kv *kv, bool is_on);

/* Longest beginning of `key` that is cached, at most tokens_max of it. Writes the pages to pages[] and holds them. */
void prefix_match(struct prefix *prefix, const struct prefix_key *key, uint32_t tokens_max, uint32_t *pages,
                  struct prefix_hit *hit);

/* Offers the page that holds tokens first .. first+token_count-1 of `key` (first: a multiple of KV_PAGE_TOKENS), held
 * by the caller alone, as a child of `parent` (KV_NONE: the first page). `*page` and `*node` are what the caller goes
 * on with; *node is KV_NONE when refused. Less than a whole page: only as the last offer for this sequence. */
enum prefix_outcome prefix_insert(struct prefix *prefix, const struct prefix_key *key, uint32_t first,
                                  uint32_t token_count, uint32_t parent, uint32_t *page, uint32_t *node);

/* Holds a page of the cache once more, gives a page back: whoever holds pages uses these and not kv's. */
void prefix_hold(struct prefix *prefix, uint32_t page);
void prefix_release(struct prefix *prefix, uint32_t page);

/* Gives a request's pages back, the last first. */
void prefix_release_list(struct prefix *prefix, const uint32_t *pages, uint32_t page_count);

/* A page for one holder: a free one, else the least recently used of the cache. KV_NONE: neither. */
uint32_t prefix_take(struct prefix *prefix);

/* Empties the cache of everything that nobody holds. */
void prefix_flush(struct prefix *prefix);

/* The page of a node. */
uint32_t prefix_page(uint32_t node);

/* Walks the whole tree and asserts every invariant. For tests: linear in the nodes. */
void prefix_check(const struct prefix *prefix);

#endif
