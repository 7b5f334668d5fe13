/* Properties of pools/ring.c: order is kept, nothing is lost or doubled, full and empty are told, also between threads.
 */
#include "pools/ring.h"
#include "tests/harness.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { COUNT = 5, CAPACITY = 8, WRITERS = 3, MESSAGES = 20000 };

struct message {
    uint32_t writer, number, check;
};

static _Alignas(64) unsigned char memory[4096];

static struct message message_of(uint32_t writer, uint32_t number)
{
    return (struct message){writer, number, (writer + 1) * 2654435761u ^ number};
}

static void a_ring_has_room_for_what_was_asked_and_keeps_order(void)
{
    struct ring ring;
    struct message message;

    CU_ASSERT(ring_bytes(COUNT, sizeof message) == 128); /* 8 x 12, in lines */
    ring_open(&ring, memory, COUNT, sizeof message);
    for (uint32_t round = 0; round < 1000; round++) {
        CU_ASSERT(!ring_pop(&ring, &message));
        for (uint32_t i = 0; i < CAPACITY; i++) {
            message = message_of(round, i);
            CU_ASSERT(ring_push(&ring, &message));
        }
        CU_ASSERT(!ring_push(&ring, &message));
        CU_ASSERT(ring_count(&ring) == CAPACITY);
        for (uint32_t i = 0; i < CAPACITY; i++) {
            CU_ASSERT(ring_pop(&ring, &message));
            CU_ASSERT(message.writer == round && message.number == i);
        }
    }
}

static void counters_may_wrap(void)
{
    struct ring ring;
    uint32_t value = 7;

    ring_open(&ring, memory, COUNT, sizeof value);
    ring.head = ring.tail = UINT32_MAX - 2;
    for (uint32_t i = 0; i < 100; i++) {
        CU_ASSERT(ring_push(&ring, &i));
        CU_ASSERT(ring_count(&ring) == 1);
        CU_ASSERT(ring_pop(&ring, &value));
        CU_ASSERT(value == i);
    }
}

static void a_crowd_ring_is_full_when_it_is(void)
{
    struct crowd_ring ring;
    struct message message = message_of(0, 0);

    CU_ASSERT(crowd_ring_bytes(COUNT, sizeof message) <= sizeof memory);
    crowd_ring_open(&ring, memory, COUNT, sizeof message);
    for (uint32_t round = 0; round < 1000; round++) {
        CU_ASSERT(!crowd_ring_pop(&ring, &message));
        for (uint32_t i = 0; i < CAPACITY; i++) {
            message = message_of(round, i);
            CU_ASSERT(crowd_ring_push(&ring, &message));
        }
        CU_ASSERT(!crowd_ring_push(&ring, &message));
        for (uint32_t i = 0; i < CAPACITY; i++) {
            CU_ASSERT(crowd_ring_pop(&ring, &message));
            CU_ASSERT(message.writer == round && message.number == i);
        }
    }
}

static struct ring shared_ring;
static struct crowd_ring shared_crowd;

static void *write_ring(void *argument)
{
    (void)argument;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct message message = message_of(0, i);
        while (!ring_push(&shared_ring, &message)) {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void two_threads_lose_nothing(void)
{
    pthread_t writer;

    ring_open(&shared_ring, memory, COUNT, sizeof(struct message));
    CU_ASSERT_FATAL(pthread_create(&writer, NULL, write_ring, NULL) == 0);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct message message;
        while (!ring_pop(&shared_ring, &message)) {
            (void)sched_yield();
        }
        struct message wanted = message_of(0, i);
        CU_ASSERT_FATAL(memcmp(&message, &wanted, sizeof wanted) == 0);
    }
    CU_ASSERT(pthread_join(writer, NULL) == 0);
}

static void *write_crowd(void *argument)
{
    uint32_t writer = *(const uint32_t *)argument;

    for (uint32_t i = 0; i < MESSAGES; i++) {
        struct message message = message_of(writer, i);
        while (!crowd_ring_push(&shared_crowd, &message)) {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void many_writers_lose_nothing_and_each_keeps_its_order(void)
{
    pthread_t writers[WRITERS];
    uint32_t names[WRITERS], next[WRITERS] = {0};

    crowd_ring_open(&shared_crowd, memory, COUNT, sizeof(struct message));
    for (uint32_t i = 0; i < WRITERS; i++) {
        names[i] = i;
        CU_ASSERT_FATAL(pthread_create(&writers[i], NULL, write_crowd, &names[i]) == 0);
    }
    for (uint32_t taken = 0; taken < WRITERS * MESSAGES; taken++) {
        struct message message;
        while (!crowd_ring_pop(&shared_crowd, &message)) {
            (void)sched_yield();
        }
        CU_ASSERT_FATAL(message.writer < WRITERS);
        struct message wanted = message_of(message.writer, next[message.writer]++);
        CU_ASSERT_FATAL(memcmp(&message, &wanted, sizeof wanted) == 0);
    }
    for (uint32_t i = 0; i < WRITERS; i++) {
        CU_ASSERT(next[i] == MESSAGES);
        CU_ASSERT(pthread_join(writers[i], NULL) == 0);
    }
}

static void ring_of_nothing(void)
{
    struct ring ring;

    ring_open(&ring, memory, 0, 8);
}

static void misuse_is_caught(void)
{
    CU_ASSERT(harness_aborts(ring_of_nothing));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_ring_has_room_for_what_was_asked_and_keeps_order),
        CASE(counters_may_wrap),
        CASE(a_crowd_ring_is_full_when_it_is),
        CASE(two_threads_lose_nothing),
        CASE(many_writers_lose_nothing_and_each_keeps_its_order),
        CASE(misuse_is_caught),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "pools/ring", cases, NULL);
}
