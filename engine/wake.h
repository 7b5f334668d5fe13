/* wake: lets a thread sleep until another has something for it. No heap, no lock.
 *
 * Use: the waiter reads `seen = wake_ticket(w)`, looks at its queues, and if they are empty calls wake_wait(w, seen,
 * ...); the giver fills a queue, then calls wake_up. A wake_up after the ticket was taken ends the wait at once: none
 * is lost.
 */
#ifndef ENGINE_WAKE_H
#define ENGINE_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct wake {
    _Atomic uint32_t ticket;  /* counts wake_up calls */
    _Atomic uint32_t waiting; /* threads in wake_wait */
};

uint32_t wake_ticket(struct wake *wake);

/* Wakes all who wait. */
void wake_up(struct wake *wake);

/* Sleeps until a wake_up after `seen` was taken, or timeout_ms passed (negative: no timeout). False on timeout. */
bool wake_wait(struct wake *wake, uint32_t seen, int64_t timeout_ms);

#endif
