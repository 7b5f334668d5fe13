/* thread: our threads, on stacks of the plan.
 *
 * Always true: a running thread holds one element of the pool STACK, whose lowest page is unreadable, so that running
 * over the stack's end faults instead of writing into a neighbour.
 */
#define _GNU_SOURCE /* affinity, thread names */
#include "engine/thread.h"

#include "config.h"
#include "engine/start.h"
#include "pools/pools.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GUARD_BYTES = 4096, NICE_LOW = 10, NAME_BYTES_MAX = 15 };

static void *enter(void *argument)
{
    struct thread *thread = argument;

    assert(thread->run != NULL);
    if (thread->priority == THREAD_LOW) {
        /* Linux keeps a nice value for each thread; a refusal costs pace, nothing else. */
        (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE_LOW);
    }
    thread->run(thread->argument);
    return NULL;
}

void thread_start(struct thread *thread, const char *name, enum thread_priority priority, void (*run)(void *argument),
                  void *argument)
{
    pthread_attr_t attributes;
    sigset_t all, before;

    seal_assert_open();
    assert(!thread->is_running);
    assert(strlen(name) <= NAME_BYTES_MAX);
    *thread = (struct thread){.run = run, .argument = argument, .priority = priority};
    thread->stack = pools_get(POOL_STACK);
    assert(slab_is_some(thread->stack)); /* the plan has one for each thread */
    unsigned char *stack = pools_at(POOL_STACK, thread->stack);
    uint64_t stack_bytes = pools_element_bytes(POOL_STACK);
    assert(stack_bytes > GUARD_BYTES);
    domain_guard(stack, GUARD_BYTES);

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits it */
    int refused = pthread_attr_init(&attributes);
    refused =
        refused != 0 ? refused : pthread_attr_setstack(&attributes, stack + GUARD_BYTES, stack_bytes - GUARD_BYTES);
    refused = refused != 0 ? refused : pthread_create(&thread->id, &attributes, enter, thread);
    (void)pthread_attr_destroy(&attributes);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (refused != 0) {
        start_refuse(START_BUG, "cannot start the thread %s: %s", name, start_errno_text(refused));
    }
    thread->is_running = true;
    (void)pthread_setname_np(thread->id, name);
}

void thread_join(struct thread *thread)
{
    assert(thread->is_running);
    int failed = pthread_join(thread->id, NULL);
    assert(failed == 0);
    (void)failed;
    thread->is_running = false;
    pools_put(POOL_STACK, thread->stack);
}

/* Reads "quota period" or one number from a control group's file; false if there is none or no limit. */
static bool read_numbers(const char *path, uint64_t *numbers, int count)
{
    char text[64];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);

    if (file >= 0) {
        (void)close(file);
    }
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    const char *at = text;
    for (int i = 0; i < count; i++) {
        if (*at < '0' || *at > '9') {
            return false; /* "max", "-1" */
        }
        numbers[i] = 0;
        for (; *at >= '0' && *at <= '9' && numbers[i] < UINT64_MAX / 10 - 9; at++) {
            numbers[i] = numbers[i] * 10 + (uint64_t)(*at - '0');
        }
        at += *at == ' ';
    }
    return true;
}

/* Whole CPUs that the control group's quota amounts to, rounded up; UINT32_MAX without one. */
static uint32_t quota_cpu_count(void)
{
    uint64_t numbers[2];

    if (!read_numbers("/sys/fs/cgroup/cpu.max", numbers, 2) &&
        !(read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", numbers, 1) &&
          read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_period_us", numbers + 1, 1))) {
        return UINT32_MAX;
    }
    if (numbers[1] == 0 || numbers[0] == 0) {
        return UINT32_MAX;
    }
    uint64_t cpus = numbers[0] / numbers[1] + (numbers[0] % numbers[1] != 0);
    return cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

uint32_t thread_cpu_count(void)
{
    cpu_set_t set;
    uint32_t count = 0;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        count = (uint32_t)CPU_COUNT(&set);
    } else {
        long online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than a cpu_set_t names */
        count = online > 0 ? (uint32_t)online : 1;
    }
    uint32_t quota = quota_cpu_count();
    count = count < quota ? count : quota;
    return count > 0 ? count : 1;
}
