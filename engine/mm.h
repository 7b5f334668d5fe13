/* mm: encoded pictures ("features") in MM pages, and the cache of them by the full digest of file and preprocessing.
 *
 * A feature is made once for all requests that wait for it. It lives while somebody holds it; after that, encoded, it
 * stays as evictable cache, unless the plan has no pages for one. So a repeated picture is neither decoded nor encoded
 * again.
 */
#ifndef ENGINE_MM_H
#define ENGINE_MM_H

#include "engine/request.h"

#include <stdbool.h>
#include <stdint.h>

/* No feature. */
static const uint32_t MM_NONE = UINT32_MAX;

/* The way of a picture; each state is entered from the one before. */
enum mm_state {
    MM_WANTED,   /* has its pages; nobody works on it */
    MM_DECODING, /* the picture worker fills a PIXELS slot */
    MM_DECODED,  /* the slot is full */
    MM_ENCODING, /* the tower writes its pages */
    MM_READY,    /* its rows lie in its pages */
};

/* An element of the pool FEATURE. */
struct mm_feature {
    unsigned char digest[32];
    uint16_t grid_h, grid_w;
    uint32_t token_count;
    uint32_t state;   /* enum mm_state */
    uint32_t holders; /* started requests that will read it */
    uint32_t is_used;
    uint32_t older, newer; /* list of evictable ones */
    uint32_t page_count;
    uint32_t pages[]; /* [picture_pages]: indices of the pool MM_PAGE */
};

/* Always true: free + evictable + held pages == page_count; evictable features are READY and have no holder. */
struct mm {
    uint32_t picture_pages; /* of the largest picture; 0: no pictures */
    uint32_t page_count, free_pages, evictable_pages;
    uint32_t feature_count, free_features, evictable_features;
    uint32_t oldest, newest; /* evictable features */
    uint64_t hit_count, evicted_count;
    bool keeps; /* features that nobody holds; off when the plan has no page for them */
};

/* Bytes of a FEATURE element. */
uint64_t mm_feature_bytes(uint32_t picture_pages);

void mm_open(struct mm *mm, uint32_t picture_pages);

struct mm_feature *mm_at(uint32_t feature);

/* Holds the picture's feature, a new one (WANTED, its pages taken) if there is none. False: its pages must wait.
 * Anybody but the eldest leaves a whole largest picture's pages free or evictable, so the eldest always gets on. */
bool mm_acquire(struct mm *mm, const struct picture *picture, bool is_eldest, uint32_t *feature);

/* One holder less. Without holders a READY feature becomes evictable (or is gone, without a cache), a WANTED or DECODED
 * one is gone; one that is being worked on stays until mm_settle. Gone ones are MM_NONE for everybody; returns true if
 * it is gone. */
bool mm_release(struct mm *mm, uint32_t feature);

/* Work on the feature ended: `state` is DECODED, READY, or WANTED again (failed). True if it is gone, since nobody
 * holds it. */
bool mm_settle(struct mm *mm, uint32_t feature, enum mm_state state);

/* Forgets every evictable feature. */
void mm_flush(struct mm *mm);

/* Asserts every invariant; for tests. */
void mm_check(const struct mm *mm);

#endif
