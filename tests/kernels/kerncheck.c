/* kerncheck: the driver's command line.
 *
 *     kerncheck [--op NAME] [--seed N] [--count N] [--bench] [--threads N]
 */
#include "tests/kernels/kerncheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    const char *op;
    uint64_t seed;
    uint32_t count, threads;
    bool is_bench;
};

static int usage(void)
{
    fprintf(stderr, "usage: kerncheck [--op NAME] [--seed N] [--count N] [--bench] [--threads N]\n");
    return 2;
}

static bool read_choice(int argc, char **argv, struct choice *choice)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--bench") == 0) {
            choice->is_bench = true;
            continue;
        }
        if (strcmp(argv[i], "--op") == 0) {
            choice->op = value;
        } else if (strcmp(argv[i], "--seed") == 0) {
            choice->seed = strtoull(value, NULL, 10);
            choice->count = 1;
        } else if (strcmp(argv[i], "--count") == 0) {
            choice->count = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--threads") == 0) {
            choice->threads = (uint32_t)strtoul(value, NULL, 10);
        } else {
            return false;
        }
        i++;
    }
    return choice->threads >= 1 && choice->threads <= 8;
}

int main(int argc, char **argv)
{
    struct choice choice = {.count = 200, .threads = 1};
    int failures = 0;
    bool is_known = false;

    if (!read_choice(argc, argv, &choice)) {
        return usage();
    }
    kernels_choose();
    if (choice.is_bench) {
        kerncheck_bench(choice.op, choice.threads);
        return 0;
    }
    for (enum op op = 0; op < OP_COUNT; op++) {
        if (choice.op == NULL || strcmp(choice.op, op_name(op)) == 0) {
            int found = kerncheck_op(op, choice.seed, choice.count);
            printf("%s: %u trials, %d failures\n", op_name(op), choice.count, found);
            failures += found;
            is_known = true;
        }
    }
    return !is_known ? usage() : failures > 0;
}
