/* Properties of engine/wake.c: no wake-up is lost, timeouts end waits, all waiters wake. */
#include "engine/wake.h"
#include "engine/clock.h"
#include "tests/harness.h"

#include <pthread.h>
#include <unistd.h>

enum { ROUNDS = 20000, WAITERS = 4 };

static struct wake there, back;
static _Atomic uint32_t ball;
static struct wake gate;
static _Atomic uint32_t passed;

static void a_wake_up_after_the_ticket_is_never_lost(void)
{
    struct wake wake = {0};

    uint32_t seen = wake_ticket(&wake);
    wake_up(&wake);
    CU_ASSERT(wake_wait(&wake, seen, -1));
    CU_ASSERT(wake_wait(&wake, seen, 0)); /* still true: the ticket is old */
    CU_ASSERT(wake.waiting == 0);
}

static void a_wait_ends_in_time(void)
{
    struct wake wake = {0};

    uint64_t began_ms = clock_now_ms();
    CU_ASSERT(!wake_wait(&wake, wake_ticket(&wake), 30));
    CU_ASSERT(clock_now_ms() - began_ms >= 29);
    began_ms = clock_now_ms();
    CU_ASSERT(!wake_wait(&wake, wake_ticket(&wake), 0));
    CU_ASSERT(clock_now_ms() - began_ms < 1000);
}

static void *return_the_ball(void *argument)
{
    (void)argument;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t seen;
        while (seen = wake_ticket(&there), atomic_load(&ball) != 2 * i + 1) {
            (void)wake_wait(&there, seen, -1);
        }
        atomic_store(&ball, 2 * i + 2);
        wake_up(&back);
    }
    return NULL;
}

static void two_threads_play_without_losing_a_ball(void)
{
    pthread_t other;

    CU_ASSERT_FATAL(pthread_create(&other, NULL, return_the_ball, NULL) == 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t seen;
        atomic_store(&ball, 2 * i + 1);
        wake_up(&there);
        while (seen = wake_ticket(&back), atomic_load(&ball) != 2 * i + 2) {
            (void)wake_wait(&back, seen, -1);
        }
    }
    CU_ASSERT(pthread_join(other, NULL) == 0);
}

static void *wait_at_the_gate(void *argument)
{
    (void)argument;
    (void)wake_wait(&gate, 0, -1);
    (void)atomic_fetch_add(&passed, 1);
    return NULL;
}

static void all_who_wait_wake(void)
{
    pthread_t waiters[WAITERS];

    for (int i = 0; i < WAITERS; i++) {
        CU_ASSERT_FATAL(pthread_create(&waiters[i], NULL, wait_at_the_gate, NULL) == 0);
    }
    while (atomic_load(&gate.waiting) < WAITERS) {
        (void)usleep(1000);
    }
    CU_ASSERT(atomic_load(&passed) == 0);
    wake_up(&gate);
    for (int i = 0; i < WAITERS; i++) {
        CU_ASSERT(pthread_join(waiters[i], NULL) == 0);
    }
    CU_ASSERT(atomic_load(&passed) == WAITERS);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_wake_up_after_the_ticket_is_never_lost),
        CASE(a_wait_ends_in_time),
        CASE(two_threads_play_without_losing_a_ball),
        CASE(all_who_wait_wake),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/wake", cases, NULL);
}
