/* seal: the moment after which no memory is obtained. Checked in every build.
 *
 * Always true: the state only moves forward, OPEN, CLOSED, ENDED.
 */
#include "pools/seal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic int current = SEAL_OPEN;

/* Not assert: this must hold whatever the build defines, and must not allocate while it complains. */
static void demand(bool condition, const char *complaint, size_t bytes)
{
    if (!condition) {
        (void)!write(STDERR_FILENO, complaint, bytes);
        abort();
    }
}

#define DEMAND(condition, complaint) demand(condition, complaint, sizeof complaint - 1)

enum seal_state seal_state(void)
{
    return (enum seal_state)atomic_load_explicit(&current, memory_order_acquire);
}

void seal_assert_open(void)
{
    DEMAND(seal_state() == SEAL_OPEN, "bug: memory is asked for, or given back, after the seal\n");
}

static void move(enum seal_state state)
{
    atomic_store_explicit(&current, (int)state, memory_order_release);
    if (seal_hook != NULL) {
        seal_hook(state);
    }
}

void seal_close(void)
{
    DEMAND(seal_state() == SEAL_OPEN, "bug: sealed twice\n");
    move(SEAL_CLOSED);
}

void seal_end(void)
{
    if (seal_state() == SEAL_CLOSED) {
        move(SEAL_ENDED);
    }
}
