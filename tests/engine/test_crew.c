/* Properties of engine/crew.c: each tile runs exactly once, run() returns when all are done, jobs follow each other
 * closely. */
#include "engine/crew.h"
#include "tests/harness.h"
#include "tests/small_plan.h"

#include <string.h>
#include <unistd.h>

enum { WORKERS = 4, TILES_MAX = 300 };

static struct crew crew;
static _Atomic uint32_t runs[TILES_MAX];
static _Atomic uint32_t seen_workers;

static int all_home(void)
{
    return pools_used(POOL_STACK) == 0 ? 0 : 1;
}

static void count_tile(void *ctx, uint32_t tile_index, uint32_t worker_index)
{
    uint32_t *sum = ctx;

    (void)atomic_fetch_add(&runs[tile_index], 1);
    (void)atomic_fetch_or(&seen_workers, 1u << worker_index);
    (void)__atomic_fetch_add(sum, tile_index, __ATOMIC_RELAXED);
}

static void run_jobs(uint32_t worker_count, uint32_t jobs)
{
    crew_start(&crew, worker_count);
    CU_ASSERT(crew.team.worker_count == worker_count);
    for (uint32_t job = 0; job < jobs; job++) {
        uint32_t tile_count = job * 7 % TILES_MAX;
        uint32_t sum = 0;
        memset(runs, 0, sizeof runs);
        crew.team.run(&crew.team, count_tile, &sum, tile_count);
        CU_ASSERT_FATAL(sum == tile_count * (tile_count - (tile_count > 0)) / 2);
        for (uint32_t i = 0; i < TILES_MAX; i++) {
            CU_ASSERT_FATAL(atomic_load(&runs[i]) == (i < tile_count ? 1 : 0));
        }
        if (job % 500 == 0) {
            (void)usleep(2000); /* let the workers fall asleep */
        }
    }
    crew_stop(&crew);
}

static void each_tile_runs_exactly_once(void)
{
    atomic_store(&seen_workers, 0);
    run_jobs(WORKERS, 3000);
    CU_ASSERT(atomic_load(&seen_workers) < 1u << WORKERS);
}

static void one_worker_is_a_crew_too(void)
{
    atomic_store(&seen_workers, 0);
    run_jobs(1, 300);
    CU_ASSERT(atomic_load(&seen_workers) == 1);
}

static void take_long(void *ctx, uint32_t tile_index, uint32_t worker_index)
{
    uint32_t *workers = ctx;

    workers[tile_index] = worker_index;
    (void)usleep(20000);
}

static void a_slow_tile_holds_up_no_other(void)
{
    uint32_t workers[WORKERS] = {0};
    uint32_t used = 0;

    crew_start(&crew, WORKERS);
    (void)usleep(5000);
    crew.team.run(&crew.team, take_long, workers, WORKERS);
    for (int i = 0; i < WORKERS; i++) {
        used |= 1u << workers[i];
    }
    CU_ASSERT((used & (used - 1)) != 0); /* more than one */
    crew_stop(&crew);
}

static void run_inside(void *ctx, uint32_t tile_index, uint32_t worker_index)
{
    (void)tile_index;
    (void)worker_index;
    crew.team.run(&crew.team, count_tile, ctx, 2);
}

static void job_inside_a_job(void)
{
    uint32_t sum = 0;

    crew_start(&crew, 2);
    crew.team.run(&crew.team, run_inside, &sum, 2);
}

static void misuse_is_caught(void)
{
    CU_ASSERT(harness_aborts(job_inside_a_job));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(each_tile_runs_exactly_once),
        CASE(one_worker_is_a_crew_too),
        CASE(a_slow_tile_holds_up_no_other),
        CASE(misuse_is_caught),
        {NULL, NULL},
    };
    return small_plan_open() ? harness_run(argc, argv, "engine/crew", cases, all_home) : 2;
}
