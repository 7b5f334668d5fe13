/* seal: the moment after which no memory is obtained. Checked in every build. */
#ifndef POOLS_SEAL_H
#define POOLS_SEAL_H

#include <stdbool.h>
#include <stdint.h>

enum seal_state {
    SEAL_OPEN,   /* start-up: memory is planned, carved, filled */
    SEAL_CLOSED, /* from "ready" to SIGTERM: none is obtained or given back */
    SEAL_ENDED   /* shutdown: the promise is over, the process goes */
};

enum seal_state seal_state(void);

/* First line of everything that obtains memory: aborts unless the state is SEAL_OPEN. */
void seal_assert_open(void);

/* SEAL_OPEN to SEAL_CLOSED, once; aborts otherwise. pools_seal calls it. */
void seal_close(void);

/* SEAL_CLOSED to SEAL_ENDED: SIGTERM came and the last request ended. Nothing to do before the seal. */
void seal_end(void);

/* Told of each change, if the program links one (the malloc interposer of the test build). */
__attribute__((weak)) void seal_hook(enum seal_state state);

/* Heap calls of the whole process since the seal, counted by an interposer, if the program links one. */
__attribute__((weak)) uint64_t seal_heap_calls(void);

#endif
