/* ring: queues of fixed length between threads, over memory of the plan. No lock, no wait, no loss: a full ring says
 * so. */
#ifndef POOLS_RING_H
#define POOLS_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One writer, one reader. */
struct ring {
    unsigned char *elements; /* [capacity][element_bytes] */
    uint32_t capacity;       /* a power of two */
    uint32_t element_bytes;
    _Alignas(64) _Atomic uint32_t head; /* elements taken so far; the reader's */
    _Alignas(64) _Atomic uint32_t tail; /* elements given so far; the writer's */
};

/* Bytes of memory for a ring of at least `count` elements; a multiple of 64. UINT64_MAX on overflow. */
uint64_t ring_bytes(uint32_t count, uint32_t element_bytes);

/* Opens an empty ring over ring_bytes(count, element_bytes) bytes that the caller keeps. Room for `count` or more. */
void ring_open(struct ring *ring, void *memory, uint32_t count, uint32_t element_bytes);

/* Copies an element in; false when full. The writer. */
bool ring_push(struct ring *ring, const void *element);

/* Copies the oldest element out; false when empty. The reader. */
bool ring_pop(struct ring *ring, void *element);

/* Elements inside; exact for the reader and the writer, recent for others. */
uint32_t ring_count(const struct ring *ring);

/* Many writers, one reader. Elements come out in the order in which their writers got a turn. */
struct crowd_ring {
    unsigned char *slots; /* [capacity][slot_bytes]: the slot's turn, then the element */
    uint32_t capacity;    /* a power of two */
    uint32_t element_bytes;
    uint32_t slot_bytes;
    _Alignas(64) uint32_t head;         /* the reader's */
    _Alignas(64) _Atomic uint32_t tail; /* turns given so far */
};

/* As above. A slot takes element_bytes + 4, rounded up to 8. */
uint64_t crowd_ring_bytes(uint32_t count, uint32_t element_bytes);
void crowd_ring_open(struct crowd_ring *ring, void *memory, uint32_t count, uint32_t element_bytes);
bool crowd_ring_push(struct crowd_ring *ring, const void *element); /* any thread */
bool crowd_ring_pop(struct crowd_ring *ring, void *element);        /* the reader */
bool crowd_ring_has_any(const struct crowd_ring *ring);             /* the reader: a pop would succeed */

#endif
