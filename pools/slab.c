/* slab: fixed-size elements out of one block, in constant time.
 *
 * Always true between calls: an index is on the free stack exactly once and its generation is even, or it is not
 * there and its generation is odd. So free_count + used + cached == count, and a second put or a stale handle shows
 * in the generation, without a search.
 */
#include "pools/slab.h"

#include <assert.h>
#include <string.h>

enum { CACHE_LINE_BYTES = 64, SMALL_ALIGNMENT_BYTES = 8, PUT_PATTERN = 0xA5 };

uint64_t slab_stride_bytes(uint64_t element_bytes)
{
    uint64_t alignment = element_bytes < CACHE_LINE_BYTES ? SMALL_ALIGNMENT_BYTES : CACHE_LINE_BYTES;
    uint64_t rounded;

    if (__builtin_add_overflow(element_bytes, alignment - 1, &rounded)) {
        return UINT64_MAX;
    }
    return rounded / alignment * alignment;
}

uint64_t slab_books_bytes(uint32_t count)
{
    uint64_t bytes = (uint64_t)count * (2 * sizeof(uint32_t) + sizeof(uint8_t));

    return (bytes + 7) / 8 * 8;
}

void slab_open(struct slab *slab, void *elements, uint64_t element_bytes, uint32_t count, void *books)
{
    assert(slab != NULL);
    assert(count == 0 || (elements != NULL && books != NULL));
    assert((uintptr_t)books % SMALL_ALIGNMENT_BYTES == 0);

    memset(slab, 0, sizeof *slab);
    slab->elements = elements;
    slab->element_bytes = element_bytes;
    slab->stride_bytes = slab_stride_bytes(element_bytes);
    slab->count = count;
    slab->free_count = count;
    if (count == 0) {
        return;
    }
    memset(books, 0, slab_books_bytes(count));
    slab->free_stack = books;
    slab->generations = (uint32_t *)books + count;
    slab->is_cached = (uint8_t *)((uint32_t *)books + 2 * (uint64_t)count);

    /* Lowest index on top: a lightly loaded server touches few pages. */
    for (uint32_t i = 0; i < count; i++) {
        slab->free_stack[i] = count - 1 - i;
    }
}

static uint32_t load(const _Atomic uint32_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Only the owner writes, so a load and a store are enough; readers elsewhere see some recent value. */
static void store(_Atomic uint32_t *counter, uint32_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

static void raise_used(struct slab *slab)
{
    uint32_t used = load(&slab->used_count) + 1;

    assert(used <= slab->count);
    store(&slab->used_count, used);
    if (used > load(&slab->used_high_water)) {
        store(&slab->used_high_water, used);
    }
}

static void lower(_Atomic uint32_t *counter)
{
    uint32_t value = load(counter);

    assert(value > 0);
    store(counter, value - 1);
}

slab_handle slab_get(struct slab *slab)
{
    if (slab->free_count == 0) {
        slab_refuse(slab);
        return SLAB_NONE;
    }

    uint32_t index = slab->free_stack[--slab->free_count];
    assert(index < slab->count);
    assert(slab->generations[index] % 2 == 0);

    slab->generations[index]++;
    raise_used(slab);
    return (slab_handle){index, slab->generations[index]};
}

void slab_refuse(struct slab *slab)
{
    uint64_t refused = atomic_load_explicit(&slab->refused_count, memory_order_relaxed);

    atomic_store_explicit(&slab->refused_count, refused + 1, memory_order_relaxed);
}

void *slab_at(const struct slab *slab, slab_handle handle)
{
    assert(handle.index < slab->count);
    assert(handle.generation % 2 == 1);
    assert(handle.generation == slab->generations[handle.index]);

    return slab->elements + handle.index * slab->stride_bytes;
}

slab_handle slab_held(const struct slab *slab, uint32_t index)
{
    assert(index < slab->count);
    assert(slab->generations[index] % 2 == 1);

    return (slab_handle){index, slab->generations[index]};
}

void slab_put(struct slab *slab, slab_handle handle)
{
    void *element = slab_at(slab, handle); /* asserts that it is held */
    assert(slab->free_count < slab->count);
    assert(slab->is_cached[handle.index] == 0);

    if (slab->fills_on_put) {
        memset(element, PUT_PATTERN, slab->element_bytes);
    }
    slab->generations[handle.index]++;
    slab->free_stack[slab->free_count++] = handle.index;
    lower(&slab->used_count);
}

void slab_cache(struct slab *slab, slab_handle handle)
{
    (void)slab_at(slab, handle); /* asserts that it is held */
    assert(slab->is_cached[handle.index] == 0);

    slab->is_cached[handle.index] = 1;
    store(&slab->cached_count, load(&slab->cached_count) + 1);
    lower(&slab->used_count);
}

void slab_uncache(struct slab *slab, slab_handle handle)
{
    (void)slab_at(slab, handle); /* asserts that it is held */
    assert(slab->is_cached[handle.index] == 1);

    slab->is_cached[handle.index] = 0;
    lower(&slab->cached_count);
    raise_used(slab);
}

uint32_t slab_used(const struct slab *slab)
{
    return load(&slab->used_count);
}
