/* slab: fixed-size elements out of one block, in constant time. */
#ifndef POOLS_SLAB_H
#define POOLS_SLAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names one element for as long as it is held. A handle kept after slab_put is stale: using it is a bug
 * that slab_at and slab_put catch. Zero is never a valid handle. */
typedef struct {
    uint32_t index;      /* 0 .. count-1 */
    uint32_t generation; /* odd while held */
} slab_handle;

static const slab_handle SLAB_NONE = {0, 0};

/* True if the handle names an element, that is, if a get was not refused. */
static inline bool slab_is_some(slab_handle handle)
{
    return handle.generation != 0;
}

/* get, put, cache and uncache belong to one thread, the owner; the counters may be read by any thread. */
struct slab {
    unsigned char *elements; /* [count][stride_bytes] */
    uint32_t *free_stack;    /* [count]; the first free_count entries are free indices */
    uint32_t *generations;   /* [count] */
    uint8_t *is_cached;      /* [count] */
    uint64_t element_bytes;
    uint64_t stride_bytes;
    uint32_t count;
    uint32_t free_count;
    bool fills_on_put;                /* test runs: an element is overwritten when it is given back */
    _Atomic uint32_t used_count;      /* held by somebody who needs it */
    _Atomic uint32_t cached_count;    /* held only because nobody else wants it yet */
    _Atomic uint32_t used_high_water; /* largest used_count so far */
    _Atomic uint64_t refused_count;
};

/* Distance between two elements: a multiple of 8 below a cache line, of 64 from there on. Saturates at UINT64_MAX. */
uint64_t slab_stride_bytes(uint64_t element_bytes);

/* Bytes that slab_open needs beside the elements, for `count` elements. Aligned to 8. */
uint64_t slab_books_bytes(uint32_t count);

/* Lays a slab over memory that the caller owns and keeps: `elements` of count * slab_stride_bytes(element_bytes)
 * bytes, `books` of slab_books_bytes(count), aligned to 8. All elements are free afterwards. A count of 0 is a slab
 * that refuses every get. */
void slab_open(struct slab *slab, void *elements, uint64_t element_bytes, uint32_t count, void *books);

/* Takes a free element. SLAB_NONE when there is none: counted as refused, never an error by itself. */
slab_handle slab_get(struct slab *slab);

/* Counts a refusal that was decided elsewhere (tests make the n-th get fail). */
void slab_refuse(struct slab *slab);

/* Address of a held element, element_bytes long. Asserts that the handle is not stale. */
void *slab_at(const struct slab *slab, slab_handle handle);

/* The handle of an element that is held, by its index: for those who keep bare indices (page tables). */
slab_handle slab_held(const struct slab *slab, uint32_t index);

/* Gives an element back. Asserts that it is held and not cached. */
void slab_put(struct slab *slab, slab_handle handle);

/* Marks a held element as evictable cache, and back. It stays held, but counts as cached and not as used. */
void slab_cache(struct slab *slab, slab_handle handle);
void slab_uncache(struct slab *slab, slab_handle handle);

/* Held elements that are no cache. Any thread. */
uint32_t slab_used(const struct slab *slab);

#endif
