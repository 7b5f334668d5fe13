/* Properties of pools/seal.c: it closes once, and what obtains memory after it aborts. Each case runs in a child. */
#include "pools/domain.h"
#include "pools/seal.h"
#include "tests/harness.h"

#include <sys/wait.h>
#include <unistd.h>

static enum seal_state told[8];
static int told_count;

/* The program may link this; here it does. */
void seal_hook(enum seal_state state)
{
    told[told_count++ % 8] = state;
}

/* True if `run` ends without an abort, in a child. */
static int is_fine(void (*run)(void))
{
    return !harness_aborts(run);
}

static void reserve(void)
{
    void *range = domain_reserve(DOMAIN_HOST, 4096);

    if (range == NULL || !domain_populate(DOMAIN_HOST, range, 4096)) {
        _exit(1);
    }
}

static void reserve_after_the_seal(void)
{
    seal_close();
    reserve();
}

static void map_after_the_seal(void)
{
    uint64_t bytes;

    seal_close();
    (void)domain_file_map("config.h", &bytes);
}

static void close_twice(void)
{
    seal_close();
    seal_close();
}

static void close_after_the_end(void)
{
    seal_close();
    seal_end();
    seal_close();
}

static void reserve_after_the_end(void)
{
    seal_close();
    seal_end();
    reserve();
}

static void memory_is_obtained_before_the_seal_only(void)
{
    CU_ASSERT(seal_state() == SEAL_OPEN);
    CU_ASSERT(is_fine(reserve));
    CU_ASSERT(harness_aborts(reserve_after_the_seal));
    CU_ASSERT(harness_aborts(map_after_the_seal));
    CU_ASSERT(harness_aborts(reserve_after_the_end));
}

static void it_moves_forward_once(void)
{
    CU_ASSERT(harness_aborts(close_twice));
    CU_ASSERT(harness_aborts(close_after_the_end));
}

static void the_hook_is_told_each_change(void)
{
    pid_t child = fork();
    int status = 1;

    if (child == 0) {
        seal_end(); /* nothing to end yet */
        seal_close();
        seal_end();
        seal_end();
        _exit(told_count == 2 && told[0] == SEAL_CLOSED && told[1] == SEAL_ENDED && seal_state() == SEAL_ENDED ? 0 : 1);
    }
    (void)waitpid(child, &status, 0);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(memory_is_obtained_before_the_seal_only),
        CASE(it_moves_forward_once),
        CASE(the_hook_is_told_each_change),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "pools/seal", cases, NULL);
}
