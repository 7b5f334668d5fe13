/* Properties of pools/pools.c: the plan is what lies in memory; pools do not touch each other; owners, seal and
 * injected refusals hold. One process opens its pools once, so what spoils them runs in a child. */
#include "pools/pools.h"
#include "config.h"
#include "tests/harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct pool_plan plan;

static const struct pool_sizes sizes = {
    .weights_bytes = 100000,
    .kv_page_bytes = 9216,
    .mm_page_bytes = 3200,
    .pixels_bytes = 30000,
    .act_text_bytes = 100000,
    .act_vision_bytes = 0, /* a row of no bytes is a pool of no elements */
    .logits_bytes = 655,
    .op_workspace_bytes = 1000,
    .step_tables_bytes = 5000,
    .request_bytes = 1234,
    .kv_meta_bytes = 16,
    .prefix_bytes = 56,
    .feature_bytes = 96,
    .conn_bytes = 4000,
    .intake_scratch_bytes = 5000,
    .tokenizer_bytes = 70000,
    .image_rgb_bytes = 9000,
    .image_work_bytes = 80000,
    .sample_work_bytes = 10000,
    .engine_bytes = 4096,
    .queue_bytes = 4096,
};
static const struct pool_limits limits = {
    .context_tokens = 64,
    .context_pages = 4,
    .running_requests = 2,
    .queued_requests = 3,
    .picture_tokens = 256,
    .picture_pages = 4,
    .feature_cache_pages = 10,
    .large_bodies = 2,
    .small_body_bytes = 6553,
    .large_body_bytes = 104857,
    .connections = 8,
    .compute_threads = 2,
    .intake_workers = 2,
    .picture_workers = 1,
    .stacks = 3,
    .kv_pages_cap = 20,
    .has_prefix_cache = true,
};

static int all_home(void)
{
    for (int i = 0; i < POOL_COUNT; i++) {
        if (pools_used((enum pool)i) != 0 || pools_cached((enum pool)i) != 0) {
            return 1;
        }
    }
    return 0;
}

/* True if `run`, in a child, ends well: it returns true and does not abort. */
static bool holds_in_child(bool (*run)(void))
{
    int status = 1;
    pid_t child = fork();

    if (child == 0) {
        _exit(run() ? 0 : 1);
    }
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void every_pool_holds_what_was_planned(void)
{
    for (int i = 0; i < POOL_COUNT; i++) {
        enum pool pool = (enum pool)i;
        CU_ASSERT(pools_capacity(pool) == plan.rows[i].count);
        CU_ASSERT(pools_element_bytes(pool) == plan.rows[i].element_bytes);
        CU_ASSERT(strcmp(pools_name(pool), plan.rows[i].name) == 0);
        CU_ASSERT(pools_domain(pool) == plan.rows[i].domain);
        CU_ASSERT(strlen(pools_when_empty(pool)) > 0);
        CU_ASSERT((pools_base(pool) == NULL) == (plan.rows[i].count == 0));
    }
    CU_ASSERT(pools_capacity(POOL_ACT_VISION) == 0);
    CU_ASSERT(pools_opened_plan()->total_bytes == plan.total_bytes);
}

static void filling_every_element_spoils_no_other(void)
{
    for (int i = 0; i < POOL_COUNT; i++) {
        for (uint32_t n = 0; n < pools_capacity((enum pool)i); n++) {
            slab_handle handle = pools_get((enum pool)i);
            CU_ASSERT_FATAL(slab_is_some(handle));
            memset(pools_at((enum pool)i, handle), (i * 7 + (int)n) & 0xFF, pools_element_bytes((enum pool)i));
        }
        CU_ASSERT(!slab_is_some(pools_get((enum pool)i)));
        CU_ASSERT(pools_refused((enum pool)i) >= 1);
    }
    for (int i = 0; i < POOL_COUNT; i++) {
        for (uint32_t n = 0; n < pools_capacity((enum pool)i); n++) {
            slab_handle handle = pools_held((enum pool)i, n);
            const unsigned char *bytes = pools_at((enum pool)i, handle);
            CU_ASSERT(bytes == (unsigned char *)pools_base((enum pool)i) + n * pools_stride_bytes((enum pool)i));
            for (uint64_t b = 0; b < pools_element_bytes((enum pool)i); b++) {
                CU_ASSERT_FATAL(bytes[b] == (unsigned char)((i * 7 + (int)n) & 0xFF));
            }
            pools_put((enum pool)i, handle);
            bool is_filled = pools_domain((enum pool)i) == DOMAIN_HOST && i != POOL_STACK;
            CU_ASSERT(bytes[0] == (is_filled ? 0xA5 : (unsigned char)(i * 7 + (int)n)));
        }
        CU_ASSERT(pools_high_water((enum pool)i) == pools_capacity((enum pool)i));
    }
}

static void write_behind_the_last_element(void)
{
    volatile unsigned char *base = pools_base(POOL_MM_PAGE);
    uint64_t page_end = (pools_stride_bytes(POOL_MM_PAGE) * pools_capacity(POOL_MM_PAGE) + 4095) / 4096 * 4096;

    base[page_end] = 1;
    abort();
}

static void a_guard_gap_lies_behind_each_pool(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        write_behind_the_last_element();
    }
    (void)waitpid(child, &status, 0);
    CU_ASSERT(!(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)); /* it never got there */
    CU_ASSERT(!(WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

static void the_nth_get_is_refused_once(void)
{
    for (uint64_t n = 0; n < 3; n++) {
        pools_refuse(POOL_REQUEST, n, POOLS_REFUSE_ONCE);
        for (uint64_t get = 0; get < 6; get++) {
            slab_handle handle = pools_get(POOL_REQUEST);
            CU_ASSERT(slab_is_some(handle) == (get != n));
            if (slab_is_some(handle)) {
                pools_put(POOL_REQUEST, handle);
            }
        }
    }
}

static void from_the_nth_get_on_all_are_refused(void)
{
    pools_refuse(POOL_REQUEST, 2, POOLS_REFUSE_FROM_THEN_ON);
    for (uint64_t get = 0; get < 6; get++) {
        slab_handle handle = pools_get(POOL_REQUEST);
        CU_ASSERT(slab_is_some(handle) == (get < 2));
        if (slab_is_some(handle)) {
            pools_put(POOL_REQUEST, handle);
        }
    }
    pools_refuse(POOL_REQUEST, 0, POOLS_REFUSE_NEVER);
    slab_handle handle = pools_get(POOL_REQUEST);
    CU_ASSERT(slab_is_some(handle));
    pools_put(POOL_REQUEST, handle);
}

static bool refusal_from_text_begins_at_the_seal(void)
{
    if (!pools_refuse_text("CONN:1:once")) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        if (!slab_is_some(pools_get(POOL_CONN))) {
            return false;
        }
    }
    pools_seal();
    return slab_is_some(pools_get(POOL_CONN)) && !slab_is_some(pools_get(POOL_CONN)) &&
           slab_is_some(pools_get(POOL_CONN));
}

static void refusals_can_be_asked_for_in_text(void)
{
    CU_ASSERT(holds_in_child(refusal_from_text_begins_at_the_seal));
    CU_ASSERT(!pools_refuse_text(""));
    CU_ASSERT(!pools_refuse_text("CONN"));
    CU_ASSERT(!pools_refuse_text("CONN:"));
    CU_ASSERT(!pools_refuse_text("CONN:x"));
    CU_ASSERT(!pools_refuse_text("CONN:1x"));
    CU_ASSERT(!pools_refuse_text("CONN:1:twice"));
    CU_ASSERT(!pools_refuse_text("CON:1"));
    CU_ASSERT(!pools_refuse_text("NOPOOL:1"));
}

static bool excess_is_counted_from_the_seal(void)
{
    slab_handle kept = pools_get(POOL_TOKENIZER);
    pools_seal();
    slab_handle page = pools_get(POOL_KV_PAGE);
    bool is_held = pools_excess(POOL_KV_PAGE) == 1 && pools_excess(POOL_TOKENIZER) == 0;
    pools_cache(POOL_KV_PAGE, page); /* kept for later: not in use */
    bool is_idle = pools_excess(POOL_KV_PAGE) == 0 && pools_cached(POOL_KV_PAGE) == 1;
    pools_uncache(POOL_KV_PAGE, page);
    pools_put(POOL_KV_PAGE, page);
    return is_held && is_idle && pools_excess(POOL_KV_PAGE) == 0 && slab_is_some(kept);
}

static void idle_is_what_was_held_at_the_seal(void)
{
    CU_ASSERT(holds_in_child(excess_is_counted_from_the_seal));
}

static void *get_in_another_thread(void *argument)
{
    (void)argument;
    (void)pools_get(POOL_REQUEST);
    return NULL;
}

static void run_in_another_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, get_in_another_thread, NULL) == 0) {
        (void)pthread_join(thread, NULL);
    }
}

static void get_by_a_stranger(void)
{
    pools_adopt(POOL_REQUEST);
    run_in_another_thread();
}

static void get_after_the_owner_changed(void)
{
    pools_adopt(POOL_REQUEST);
    (void)pools_get(POOL_REQUEST);
}

static void an_adopted_pool_has_one_owner(void)
{
    CU_ASSERT(harness_aborts(get_by_a_stranger));
    CU_ASSERT(!harness_aborts(run_in_another_thread)); /* nobody's yet: anyone may */
    CU_ASSERT(!harness_aborts(get_after_the_owner_changed));
}

static void open_twice(void)
{
    (void)pools_open(&plan);
}

static void seal_twice(void)
{
    pools_seal();
    pools_seal();
}

static void seal_with_a_mapped_file(void)
{
    uint64_t bytes;

    if (domain_file_map("config.h", &bytes) != NULL) {
        pools_seal();
    }
}

static void handle_of_another_pool(void)
{
    slab_handle handle = pools_get(POOL_KV_META);

    for (uint32_t i = 0; i < pools_capacity(POOL_KV_META) - 1; i++) {
        handle = pools_get(POOL_KV_META);
    }
    pools_put(POOL_WEIGHTS, handle);
}

static void misuse_is_caught(void)
{
    CU_ASSERT(harness_aborts(open_twice));
    CU_ASSERT(harness_aborts(seal_twice));
    CU_ASSERT(harness_aborts(seal_with_a_mapped_file));
    CU_ASSERT(harness_aborts(handle_of_another_pool));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_pool_holds_what_was_planned),
        CASE(filling_every_element_spoils_no_other),
        CASE(a_guard_gap_lies_behind_each_pool),
        CASE(the_nth_get_is_refused_once),
        CASE(from_the_nth_get_on_all_are_refused),
        CASE(refusals_can_be_asked_for_in_text),
        CASE(idle_is_what_was_held_at_the_seal),
        CASE(an_adopted_pool_has_one_owner),
        CASE(misuse_is_caught),
        {NULL, NULL},
    };
    pools_set_guards(true);
    if (!pools_plan(&sizes, &limits, 20, &plan) || !pools_open(&plan)) {
        return 2;
    }
    return harness_run(argc, argv, "pools/pools", cases, all_home);
}
