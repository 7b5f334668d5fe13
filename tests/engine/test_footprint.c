/* Properties of engine/footprint.c: what is planned is what is resident; the promise has the bounds that it names. */
#include "engine/footprint.h"
#include "tests/harness.h"
#include "tests/small_plan.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SLACK_BYTES = 64 * 1024 * 1024 }; /* the sanitizer's own pages */
#else
enum { SLACK_BYTES = 64 * 1024 };
#endif

static void the_plan_is_the_footprint(void)
{
    struct footprint footprint;

    CU_ASSERT(footprint_read(&footprint));
    CU_ASSERT(footprint.planned_bytes == pools_opened_plan()->total_bytes);
    CU_ASSERT(footprint.anonymous_bytes >= footprint.planned_bytes);
    CU_ASSERT(footprint.file_bytes > 0);
    CU_ASSERT(footprint.peak_bytes >= footprint.anonymous_bytes);
    CU_ASSERT(footprint.locked_bytes <= footprint.planned_bytes + 4096 * DOMAIN_COUNT);
    CU_ASSERT(!footprint.is_heap_counted); /* no interposer in this program */
    CU_ASSERT(footprint_keeps(&footprint) || SLACK_BYTES > 1024 * 1024);
    footprint_log(&footprint);
}

static void the_promise_is_one_percent_and_8_mib(void)
{
    const uint64_t mib = 1024 * 1024;
    struct footprint footprint = {.planned_bytes = 1000 * mib};

    footprint.anonymous_bytes = 1017 * mib;
    CU_ASSERT(footprint_keeps(&footprint));
    footprint.anonymous_bytes = 1018 * mib;
    CU_ASSERT(!footprint_keeps(&footprint));
    footprint.anonymous_bytes = 983 * mib;
    CU_ASSERT(footprint_keeps(&footprint));
    footprint.anonymous_bytes = 981 * mib; /* not populated: as bad */
    CU_ASSERT(!footprint_keeps(&footprint));
}

static void measuring_takes_no_memory(void)
{
    struct footprint before, after;

    CU_ASSERT(footprint_read(&before));
    for (int i = 0; i < 1000; i++) {
        CU_ASSERT(footprint_read(&after));
    }
    CU_ASSERT(after.heap_used_bytes == before.heap_used_bytes);
    CU_ASSERT(after.anonymous_bytes <= before.anonymous_bytes + SLACK_BYTES);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_plan_is_the_footprint),
        CASE(the_promise_is_one_percent_and_8_mib),
        CASE(measuring_takes_no_memory),
        {NULL, NULL},
    };
    return small_plan_open() ? harness_run(argc, argv, "engine/footprint", cases, NULL) : 2;
}
