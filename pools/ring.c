/* ring: queues of fixed length between threads.
 *
 * Always true of a ring: 0 <= tail - head <= capacity (counters run on, and wrap with their 32 bits).
 * Always true of a slot at position p of a crowd_ring (p = number of elements before it since the start): its turn is p
 * when it is free for that element, p + 1 when it holds it; the reader passes it on with turn p + capacity.
 */
#include "pools/ring.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { CAPACITY_MAX = 1 << 30, LINE_BYTES = 64 };

static uint32_t capacity_for(uint32_t count)
{
    uint32_t capacity = 1;

    assert(count > 0);
    assert(count <= CAPACITY_MAX);
    while (capacity < count) {
        capacity *= 2;
    }
    return capacity;
}

static uint64_t block_bytes(uint32_t count, uint64_t element_bytes)
{
    uint64_t bytes;

    if (__builtin_mul_overflow((uint64_t)capacity_for(count), element_bytes, &bytes) ||
        bytes > UINT64_MAX - LINE_BYTES) {
        return UINT64_MAX;
    }
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

uint64_t ring_bytes(uint32_t count, uint32_t element_bytes)
{
    return block_bytes(count, element_bytes);
}

void ring_open(struct ring *ring, void *memory, uint32_t count, uint32_t element_bytes)
{
    assert(ring != NULL && memory != NULL);
    assert(element_bytes > 0);
    memset(ring, 0, sizeof *ring);
    ring->elements = memory;
    ring->capacity = capacity_for(count);
    ring->element_bytes = element_bytes;
}

static unsigned char *element_at(const struct ring *ring, uint32_t position)
{
    return ring->elements + (uint64_t)(position & (ring->capacity - 1)) * ring->element_bytes;
}

bool ring_push(struct ring *ring, const void *element)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

    assert(tail - head <= ring->capacity);
    if (tail - head == ring->capacity) {
        return false;
    }
    memcpy(element_at(ring, tail), element, ring->element_bytes);
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    return true;
}

bool ring_pop(struct ring *ring, void *element)
{
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

    assert(tail - head <= ring->capacity);
    if (tail == head) {
        return false;
    }
    memcpy(element, element_at(ring, head), ring->element_bytes);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return true;
}

uint32_t ring_count(const struct ring *ring)
{
    /* head first: it only chases tail, so the difference cannot be negative. */
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint32_t count = tail - head;

    return count < ring->capacity ? count : ring->capacity;
}

static uint32_t slot_bytes_for(uint32_t element_bytes)
{
    assert(element_bytes > 0);
    assert(element_bytes < UINT32_MAX / 2);
    return (element_bytes + (uint32_t)sizeof(uint32_t) + 7) / 8 * 8;
}

uint64_t crowd_ring_bytes(uint32_t count, uint32_t element_bytes)
{
    return block_bytes(count, slot_bytes_for(element_bytes));
}

static _Atomic uint32_t *turn_at(const struct crowd_ring *ring, uint32_t position)
{
    return (_Atomic uint32_t *)(void *)(ring->slots + (uint64_t)(position & (ring->capacity - 1)) * ring->slot_bytes);
}

void crowd_ring_open(struct crowd_ring *ring, void *memory, uint32_t count, uint32_t element_bytes)
{
    assert(ring != NULL && memory != NULL);
    assert((uintptr_t)memory % 8 == 0);
    memset(ring, 0, sizeof *ring);
    ring->slots = memory;
    ring->capacity = capacity_for(count);
    ring->element_bytes = element_bytes;
    ring->slot_bytes = slot_bytes_for(element_bytes);
    for (uint32_t i = 0; i < ring->capacity; i++) {
        atomic_store_explicit(turn_at(ring, i), i, memory_order_relaxed);
    }
}

bool crowd_ring_push(struct crowd_ring *ring, const void *element)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    for (;;) {
        uint32_t turn = atomic_load_explicit(turn_at(ring, tail), memory_order_acquire);
        if (turn == tail) {
            if (atomic_compare_exchange_weak_explicit(&ring->tail, &tail, tail + 1, memory_order_relaxed,
                                                      memory_order_relaxed)) {
                break; /* the slot is ours */
            }
        } else if ((int32_t)(turn - tail) < 0) {
            return false; /* it still holds the element of one round ago: full */
        } else {
            tail = atomic_load_explicit(&ring->tail, memory_order_relaxed); /* another writer was faster */
        }
    }
    memcpy((unsigned char *)turn_at(ring, tail) + sizeof(uint32_t), element, ring->element_bytes);
    atomic_store_explicit(turn_at(ring, tail), tail + 1, memory_order_release);
    return true;
}

bool crowd_ring_has_any(const struct crowd_ring *ring)
{
    return atomic_load_explicit(turn_at(ring, ring->head), memory_order_acquire) == ring->head + 1;
}

bool crowd_ring_pop(struct crowd_ring *ring, void *element)
{
    _Atomic uint32_t *turn = turn_at(ring, ring->head);

    if (atomic_load_explicit(turn, memory_order_acquire) != ring->head + 1) {
        return false;
    }
    memcpy(element, (const unsigned char *)turn + sizeof(uint32_t), ring->element_bytes);
    atomic_store_explicit(turn, ring->head + ring->capacity, memory_order_release);
    ring->head++;
    return true;
}
