/* test_team: the team of one. */
#include "kernels/team.h"

#include "tests/harness.h"

static void count_tile(void *ctx, uint32_t tile_index, uint32_t worker_index)
{
    uint32_t *runs = ctx;

    runs[tile_index] += 1 + worker_index;
}

static void the_serial_team_runs_every_tile_once_as_worker_0(void)
{
    uint32_t runs[9] = {0};

    team_serial.run(&team_serial, count_tile, runs, 8);
    for (int i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(runs[i], 1);
    }
    CU_ASSERT_EQUAL(runs[8], 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_serial_team_runs_every_tile_once_as_worker_0),
        {NULL, NULL},
    };

    return harness_run(argc, argv, "team", cases, NULL);
}
