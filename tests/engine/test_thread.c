/* Properties of engine/thread.c: threads run on planned stacks, with signals blocked, and give their stacks back. */
#include "engine/thread.h"
#include "tests/harness.h"
#include "tests/small_plan.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8 };

struct visit {
    uintptr_t stack_address;
    bool is_sigterm_blocked;
    int nice_value;
    int sum;
};

static int all_home(void)
{
    return pools_used(POOL_STACK) == 0 ? 0 : 1;
}

static void look_around(void *argument)
{
    struct visit *visit = argument;
    volatile unsigned char room[STACK_BYTES / 2]; /* a deep frame fits */
    sigset_t blocked;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    visit->is_sigterm_blocked = sigismember(&blocked, SIGTERM) == 1;
    visit->nice_value = getpriority(PRIO_PROCESS, 0);
    visit->stack_address = (uintptr_t)room;
    for (size_t i = 0; i < sizeof room; i += 4096) {
        room[i] = 1;
        visit->sum += room[i];
    }
}

static void threads_run_on_stacks_of_the_plan(void)
{
    static struct thread threads[THREADS];
    struct visit visits[THREADS] = {0};
    sigset_t blocked;
    int own_nice = getpriority(PRIO_PROCESS, 0);

    CU_ASSERT_FATAL(pools_capacity(POOL_STACK) == THREADS);
    for (int round = 0; round < 3; round++) {
        memset(visits, 0, sizeof visits);
        for (int i = 0; i < THREADS; i++) {
            thread_start(&threads[i], "test", i % 2 == 0 ? THREAD_NORMAL : THREAD_LOW, look_around, &visits[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            thread_join(&threads[i]);
            uintptr_t base = (uintptr_t)pools_base(POOL_STACK);
            CU_ASSERT(visits[i].stack_address - base < (uintptr_t)THREADS * STACK_BYTES);
            CU_ASSERT(visits[i].is_sigterm_blocked);
            CU_ASSERT(visits[i].sum == STACK_BYTES / 2 / 4096);
            CU_ASSERT((visits[i].nice_value > own_nice) == (i % 2 == 1 && own_nice < 19));
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    CU_ASSERT(sigismember(&blocked, SIGTERM) == 0); /* ours is as it was */
}

static void overflow(void *argument)
{
    volatile unsigned char *stack = argument;

    *stack = 1; /* the lowest byte of the first stack */
}

static void running_over_the_stack_faults(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        static struct thread thread;
        thread_start(&thread, "overflow", THREAD_NORMAL, overflow, pools_base(POOL_STACK));
        thread_join(&thread);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    CU_ASSERT(!(WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

static void there_is_at_least_one_cpu(void)
{
    CU_ASSERT(thread_cpu_count() >= 1);
    CU_ASSERT(thread_cpu_count() <= 100000);
}

static void start_after_the_seal(void)
{
    static struct thread thread;
    struct visit visit = {0};

    pools_seal();
    thread_start(&thread, "late", THREAD_NORMAL, look_around, &visit);
}

static void join_of_nothing(void)
{
    static struct thread thread;

    thread_join(&thread);
}

static void misuse_is_caught(void)
{
    CU_ASSERT(harness_aborts(start_after_the_seal));
    CU_ASSERT(harness_aborts(join_of_nothing));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(threads_run_on_stacks_of_the_plan),
        CASE(running_over_the_stack_faults),
        CASE(there_is_at_least_one_cpu),
        CASE(misuse_is_caught),
        {NULL, NULL},
    };
    pools_set_guards(true); /* as test runs of the server do */
    return small_plan_open() ? harness_run(argc, argv, "engine/thread", cases, all_home) : 2;
}
