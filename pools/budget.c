/* budget: how many KV pages fit.
 *
 * It keeps: taken(pages) <= limit < taken(pages + 1), or pages == cap. taken() is the carving function itself in count
 * mode, so alignment and books are in it; it never falls when pages grow, so the largest fitting number is found by
 * halving.
 */
#include "pools/budget.h"

#include <assert.h>

uint64_t budget_taken_bytes(const struct pool_plan *plan, bool is_one_memory)
{
    assert(plan != NULL);
    return is_one_memory ? plan->total_bytes : plan->domain_bytes[DOMAIN_DEVICE];
}

/* True if a plan of `kv_pages` exists and keeps within the limit. */
static bool fits(const struct pool_sizes *sizes, const struct pool_limits *limits, uint32_t kv_pages,
                 bool is_one_memory, uint64_t limit_bytes, struct pool_plan *plan)
{
    return pools_plan(sizes, limits, kv_pages, plan) && budget_taken_bytes(plan, is_one_memory) <= limit_bytes;
}

/* Sum of the elements, with their books, of all rows that grow with the pages: KV_PAGE and those indexed by it. */
static uint64_t page_price(const struct pool_plan *none, const struct pool_plan *many, bool is_one_memory)
{
    uint64_t price = 0;

    assert(many->kv_pages > none->kv_pages);
    for (int i = 0; i < POOL_COUNT; i++) {
        if (many->rows[i].count != none->rows[i].count && (is_one_memory || many->rows[i].domain == DOMAIN_DEVICE)) {
            price += many->rows[i].stride_bytes;
            price += is_one_memory ? slab_books_bytes(8) / 8 : 0;
        }
    }
    return price;
}

enum budget_outcome budget_solve(const struct pool_sizes *sizes, const struct pool_limits *limits, uint64_t limit_bytes,
                                 bool is_one_memory, struct budget *budget)
{
    struct pool_plan none;

    assert(sizes != NULL && limits != NULL);
    assert(budget != NULL);
    *budget = (struct budget){.limit_bytes = limit_bytes, .least_pages = limits->context_pages + 1};
    budget->cap_pages = limits->kv_pages_cap > budget->least_pages ? limits->kv_pages_cap : budget->least_pages;
    if (!pools_plan(sizes, limits, 0, &none) || !pools_plan(sizes, limits, budget->least_pages, &budget->plan)) {
        return BUDGET_OVERFLOW;
    }
    budget->fixed_bytes = budget_taken_bytes(&none, is_one_memory);
    budget->page_price_bytes = page_price(&none, &budget->plan, is_one_memory);
    budget->least_bytes = budget_taken_bytes(&budget->plan, is_one_memory);
    if (budget->least_bytes > limit_bytes) {
        budget->missing_bytes = budget->least_bytes - limit_bytes;
        return BUDGET_TOO_SMALL;
    }

    uint32_t fitting = budget->least_pages, beyond = budget->cap_pages + 1;
    while (beyond - fitting > 1) {
        uint32_t middle = fitting + (beyond - fitting) / 2;
        if (fits(sizes, limits, middle, is_one_memory, limit_bytes, &budget->plan)) {
            fitting = middle;
        } else {
            beyond = middle;
        }
    }
    bool is_same = fits(sizes, limits, fitting, is_one_memory, limit_bytes, &budget->plan);
    assert(is_same);
    assert(budget->plan.kv_pages == fitting);
    (void)is_same;
    return BUDGET_FITS;
}
