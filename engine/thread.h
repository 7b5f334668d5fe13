/* thread: our threads, on stacks of the plan. All are made before the seal. */
#ifndef ENGINE_THREAD_H
#define ENGINE_THREAD_H

#include "pools/slab.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum thread_priority {
    THREAD_NORMAL,
    THREAD_LOW /* intake and pictures: running streams keep their pace */
};

/* Lies still while the thread runs. Zeroed before the first start. */
struct thread {
    pthread_t id;
    slab_handle stack;
    void (*run)(void *argument);
    void *argument;
    enum thread_priority priority;
    bool is_running;
};

/* Starts `run(argument)` on a stack of the pool STACK, with every signal blocked. `name` is at most 15 bytes, constant.
 * Refuses to start the program when the system makes no thread. */
void thread_start(struct thread *thread, const char *name, enum thread_priority priority, void (*run)(void *argument),
                  void *argument);

/* Waits until run() has returned, and gives its stack back. Asks nobody to stop. */
void thread_join(struct thread *thread);

/* CPUs that this process may use: its affinity, cut by the control group's quota, at least 1. Start-up only. */
uint32_t thread_cpu_count(void);

#endif
