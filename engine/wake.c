/* wake: lets a thread sleep until another has something for it.
 *
 * Always true: the kernel puts a waiter to sleep only while `ticket` still is what the waiter saw, and checks that
 * under its own lock; so between "I saw nothing" and "I sleep" no wake_up is lost.
 */
#define _GNU_SOURCE /* syscall */
#include "engine/wake.h"

#include "engine/clock.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint32_t wake_ticket(struct wake *wake)
{
    return atomic_load_explicit(&wake->ticket, memory_order_seq_cst);
}

void wake_up(struct wake *wake)
{
    atomic_fetch_add_explicit(&wake->ticket, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&wake->waiting, memory_order_seq_cst) > 0) {
        (void)syscall(SYS_futex, &wake->ticket, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

/* One sleep, at most timeout_us long; may end early. */
static void sleep_once(struct wake *wake, uint32_t seen, int64_t timeout_us)
{
    struct timespec timeout = {.tv_sec = (time_t)(timeout_us / 1000000),
                               .tv_nsec = (long)(timeout_us % 1000000) * 1000};

    assert(timeout.tv_nsec < 1000000000);
    (void)syscall(SYS_futex, &wake->ticket, FUTEX_WAIT_PRIVATE, seen, timeout_us < 0 ? NULL : &timeout, NULL, 0);
}

bool wake_wait(struct wake *wake, uint32_t seen, int64_t timeout_ms)
{
    uint64_t began_us = timeout_ms > 0 ? clock_now_us() : 0;
    bool is_woken;

    assert(wake != NULL);
    assert(timeout_ms <= INT64_MAX / 1000);
    atomic_fetch_add_explicit(&wake->waiting, 1, memory_order_seq_cst);
    while (!(is_woken = wake_ticket(wake) != seen)) {
        int64_t left_us = -1;
        if (timeout_ms >= 0) {
            int64_t passed_us = timeout_ms > 0 ? (int64_t)(clock_now_us() - began_us) : 0;
            left_us = timeout_ms * 1000 - passed_us;
            if (left_us <= 0) {
                break;
            }
        }
        sleep_once(wake, seen, left_us);
    }
    atomic_fetch_sub_explicit(&wake->waiting, 1, memory_order_seq_cst);
    return is_woken;
}
