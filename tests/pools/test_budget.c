/* Properties of pools/budget.c: the largest number of pages that fits, never one more; refusals name what is missing.
 */
#include "pools/budget.h"
#include "config.h"
#include "tests/harness.h"

static struct pool_sizes sizes;
static struct pool_limits limits;

/* Plausible numbers in every field, so that no row is empty. */
static void fill(void)
{
    sizes = (struct pool_sizes){
        .weights_bytes = 10000000,
        .kv_page_bytes = 9216,
        .mm_page_bytes = 32768,
        .pixels_bytes = 300000,
        .act_text_bytes = 1000000,
        .act_vision_bytes = 2000000,
        .logits_bytes = 65536,
        .op_workspace_bytes = 1000,
        .step_tables_bytes = 5000,
        .request_bytes = 12345,
        .kv_meta_bytes = 16,
        .prefix_bytes = 56,
        .feature_bytes = 96,
        .conn_bytes = 40000,
        .intake_scratch_bytes = 500000,
        .tokenizer_bytes = 700000,
        .image_rgb_bytes = 900000,
        .image_work_bytes = 800000,
        .sample_work_bytes = 10000,
        .engine_bytes = 4096,
        .queue_bytes = 4096,
    };
    limits = (struct pool_limits){
        .context_tokens = 4096,
        .context_pages = 256,
        .running_requests = 4,
        .queued_requests = 16,
        .chunk_tokens = 512,
        .step_tokens = 516,
        .picture_tokens = 256,
        .picture_pages = 4,
        .picture_pixels = 200704,
        .feature_cache_pages = 100,
        .images_per_request = 8,
        .source_pixels = 1000000,
        .large_bodies = 2,
        .small_body_bytes = 65536,
        .large_body_bytes = 1048576,
        .connections = 64,
        .compute_threads = 2,
        .intake_workers = 2,
        .picture_workers = 1,
        .stacks = 6,
        .kv_pages_cap = 100000,
        .has_prefix_cache = true,
    };
}

static uint64_t taken(uint32_t kv_pages, bool is_one_memory)
{
    struct pool_plan plan;

    CU_ASSERT_FATAL(pools_plan(&sizes, &limits, kv_pages, &plan));
    return budget_taken_bytes(&plan, is_one_memory);
}

static void the_solution_fits_and_one_more_page_does_not(void)
{
    struct budget budget;
    uint64_t limit_bytes = taken(257, true);

    fill();
    for (int step = 0; step < 2000; step++, limit_bytes += 7919) {
        CU_ASSERT_FATAL(budget_solve(&sizes, &limits, limit_bytes, true, &budget) == BUDGET_FITS);
        CU_ASSERT(budget.plan.total_bytes <= limit_bytes);
        CU_ASSERT(budget.plan.kv_pages >= 257);
        CU_ASSERT(taken(budget.plan.kv_pages + 1, true) > limit_bytes);
        CU_ASSERT(budget.plan.kv_pages == budget.plan.rows[POOL_KV_PAGE].count);
        CU_ASSERT(budget.plan.kv_pages == budget.plan.rows[POOL_KV_META].count);
    }
}

static void more_memory_never_gives_fewer_pages(void)
{
    struct budget less, more;

    fill();
    uint64_t limit_bytes = taken(257, true);
    CU_ASSERT(budget_solve(&sizes, &limits, limit_bytes, true, &less) == BUDGET_FITS);
    for (int step = 0; step < 500; step++) {
        limit_bytes += 3001;
        CU_ASSERT(budget_solve(&sizes, &limits, limit_bytes, true, &more) == BUDGET_FITS);
        CU_ASSERT(more.plan.kv_pages >= less.plan.kv_pages);
        less = more;
    }
}

static void the_page_price_is_what_a_page_costs(void)
{
    struct budget budget;

    fill();
    CU_ASSERT(budget_solve(&sizes, &limits, (uint64_t)1 << 34, true, &budget) == BUDGET_FITS);
    CU_ASSERT(budget.plan.kv_pages == limits.kv_pages_cap);
    CU_ASSERT(budget.page_price_bytes == 9216 + 16 + 56 + 3 * 9);
    uint64_t grown = taken(50000, true) - taken(0, true);
    CU_ASSERT(grown >= 50000 * budget.page_price_bytes && grown < 50000 * budget.page_price_bytes + POOL_COUNT * 4096);
    CU_ASSERT(budget.fixed_bytes == taken(0, true));
}

static void a_byte_too_little_is_refused_by_a_byte(void)
{
    struct budget budget;

    fill();
    uint64_t least = taken(257, true);
    CU_ASSERT(budget_solve(&sizes, &limits, least, true, &budget) == BUDGET_FITS);
    CU_ASSERT(budget.plan.kv_pages == 257);
    CU_ASSERT(budget_solve(&sizes, &limits, least - 1, true, &budget) == BUDGET_TOO_SMALL);
    CU_ASSERT(budget.missing_bytes == 1);
    CU_ASSERT(budget.plan.total_bytes == least);
    CU_ASSERT(budget_solve(&sizes, &limits, 0, true, &budget) == BUDGET_TOO_SMALL);
    CU_ASSERT(budget.missing_bytes == least);
}

static void with_memory_of_its_own_only_the_device_is_limited(void)
{
    struct budget budget;

    fill();
    uint64_t least = taken(257, false);
    CU_ASSERT(least < taken(257, true));
    CU_ASSERT(budget_solve(&sizes, &limits, least, false, &budget) == BUDGET_FITS);
    CU_ASSERT(budget.plan.kv_pages == 257);
    CU_ASSERT(budget.page_price_bytes == 9216);
    CU_ASSERT(budget.plan.domain_bytes[DOMAIN_DEVICE] <= least);
}

static void without_prefix_cache_a_page_is_cheaper(void)
{
    struct budget with, without;

    fill();
    uint64_t limit_bytes = taken(3000, true);
    CU_ASSERT(budget_solve(&sizes, &limits, limit_bytes, true, &with) == BUDGET_FITS);
    limits.has_prefix_cache = false;
    CU_ASSERT(budget_solve(&sizes, &limits, limit_bytes, true, &without) == BUDGET_FITS);
    CU_ASSERT(without.page_price_bytes < with.page_price_bytes);
    CU_ASSERT(without.plan.kv_pages > with.plan.kv_pages);
    CU_ASSERT(without.plan.rows[POOL_PREFIX].count == 0);
}

static void sizes_beyond_64_bits_are_refused(void)
{
    struct budget budget;

    fill();
    sizes.kv_page_bytes = UINT64_MAX / 2;
    CU_ASSERT(budget_solve(&sizes, &limits, UINT64_MAX, true, &budget) == BUDGET_OVERFLOW);
    fill();
    sizes.weights_bytes = UINT64_MAX;
    CU_ASSERT(budget_solve(&sizes, &limits, UINT64_MAX, true, &budget) == BUDGET_OVERFLOW);
    fill();
    sizes.weights_bytes = UINT64_MAX / 2;
    sizes.tokenizer_bytes = UINT64_MAX / 2 + 10;
    CU_ASSERT(budget_solve(&sizes, &limits, UINT64_MAX, true, &budget) == BUDGET_OVERFLOW);
    fill();
    limits.running_requests = UINT32_MAX;
    CU_ASSERT(budget_solve(&sizes, &limits, UINT64_MAX, true, &budget) == BUDGET_OVERFLOW);
    fill();
    limits.connections = UINT32_MAX; /* + 1 would be 0 */
    CU_ASSERT(budget_solve(&sizes, &limits, UINT64_MAX, true, &budget) == BUDGET_OVERFLOW);
}

static void every_byte_of_the_plan_is_in_a_row_or_in_the_books(void)
{
    struct pool_plan plan;
    uint64_t sum = 0;

    fill();
    CU_ASSERT(pools_plan(&sizes, &limits, 1000, &plan));
    for (int i = 0; i < POOL_COUNT; i++) {
        CU_ASSERT(plan.rows[i].bytes == plan.rows[i].stride_bytes * plan.rows[i].count);
        CU_ASSERT(plan.rows[i].stride_bytes >= plan.rows[i].element_bytes);
        CU_ASSERT(plan.rows[i].count > 0);
        sum += plan.rows[i].bytes;
    }
    CU_ASSERT(sum + plan.books_bytes == plan.total_bytes);
    uint64_t books = 0;
    for (int i = 0; i < POOL_COUNT; i++) {
        books += slab_books_bytes(plan.rows[i].count);
    }
    CU_ASSERT(plan.books_bytes >= books && plan.books_bytes - books < POOL_COUNT * (4096 + 64)); /* alignment */
    CU_ASSERT(plan.rows[POOL_WEIGHTS].offset_bytes == 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_solution_fits_and_one_more_page_does_not),
        CASE(more_memory_never_gives_fewer_pages),
        CASE(the_page_price_is_what_a_page_costs),
        CASE(a_byte_too_little_is_refused_by_a_byte),
        CASE(with_memory_of_its_own_only_the_device_is_limited),
        CASE(without_prefix_cache_a_page_is_cheaper),
        CASE(sizes_beyond_64_bits_are_refused),
        CASE(every_byte_of_the_plan_is_in_a_row_or_in_the_books),
        {NULL, NULL},
    };
    fill();
    return harness_run(argc, argv, "pools/budget", cases, NULL);
}
