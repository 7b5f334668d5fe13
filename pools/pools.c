/* pools: the public face of all the server's memory, made from the rows of pools/pool_table.h.
 *
 * Always true after pools_open: every pool lies where the plan says, inside its domain's range, and no two overlap.
 */
#include "pools/pools.h"

#include "config.h"
#include "pools/carve.h"
#include "pools/resident.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* How a test makes gets fail. */
struct injection {
    _Atomic int refusal; /* enum pools_refusal */
    _Atomic uint64_t gets_left;
};

struct state {
    bool is_open, has_guards;
    struct pool_plan plan;
    struct slab slabs[POOL_COUNT];
    const void *_Atomic owners[POOL_COUNT]; /* the owner thread's mark, or NULL */
    uint32_t idle_used[POOL_COUNT];
    struct injection injections[POOL_COUNT];
    struct { /* from pools_refuse_text, until the seal */
        bool is_set;
        enum pool pool;
        uint64_t n;
        enum pools_refusal refusal;
    } pending;
};

static struct state state;

/* Its address is the calling thread's name. */
static _Thread_local char thread_mark;

static const struct {
    const char *name, *when_empty;
    enum domain domain;
} facts[POOL_COUNT] = {
#define POOL(row_name, row_domain, element_bytes, holders, row_when_empty)                                             \
    [POOL_##row_name] = {.name = #row_name, .when_empty = row_when_empty, .domain = DOMAIN_##row_domain},
#define HELD(count, whom)
#include "pools/pool_table.h"
};

static void add_holder(struct pool_plan_row *row, uint64_t count, const char *whom)
{
    assert(row->holder_count < POOL_HOLDERS_MAX);
    row->holders[row->holder_count++] = (struct pool_holder){count, whom};
}

/* A row's formulas, evaluated. */
static void measure_row(enum pool pool, const struct pool_sizes *s, const struct pool_limits *l, uint32_t kv_pages,
                        struct pool_plan_row *row)
{
    switch (pool) {
#define KV_PAGES          kv_pages
#define CACHED_KV_PAGES   (l->has_prefix_cache ? kv_pages : 0)
#define HELD(count, whom) add_holder(row, (count), whom);
#define POOL(name, domain, bytes, holders, when_empty)                                                                 \
    case POOL_##name:                                                                                                  \
        row->element_bytes = (bytes);                                                                                  \
        holders break;
#include "pools/pool_table.h"
#undef KV_PAGES
#undef CACHED_KV_PAGES
    case POOL_COUNT:
        assert(pool != POOL_COUNT);
        break;
    }
}

/* Sums the holders. False if the sum passes 32 bits. */
static bool sum_holders(struct pool_plan_row *row)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < row->holder_count; i++) {
        if (__builtin_add_overflow(count, row->holders[i].count, &count) || count > UINT32_MAX) {
            return false;
        }
    }
    row->count = row->element_bytes == 0 ? 0 : (uint32_t)count; /* a text model has no pictures */
    return true;
}

/* Lays one row: elements in its own domain, books in the host domain, a gap behind the elements in test runs. Both
 * modes. */
static void lay_row(struct pool_plan_row *row, struct carve *carves, struct slab *slab)
{
    uint64_t offset_bytes, books_offset_bytes;

    void *elements = carve_take(&carves[row->domain], row->stride_bytes, row->count, &offset_bytes);
    void *gap = state.has_guards && row->count > 0 ? carve_gap(&carves[row->domain]) : NULL;
    void *books = carve_take(&carves[DOMAIN_HOST], slab_books_bytes(row->count), 1, &books_offset_bytes);
    if (slab == NULL) {
        row->offset_bytes = offset_bytes;
        return;
    }
    assert(row->offset_bytes == offset_bytes);
    slab_open(slab, elements, row->element_bytes, row->count, books);
    /* Not what the device may still read, nor stacks: their lowest page is unreadable. */
    slab->fills_on_put = state.has_guards && row->domain == DOMAIN_HOST && slab != &state.slabs[POOL_STACK];
    if (gap != NULL) {
        domain_guard(gap, CARVE_PAGE_BYTES);
    }
}

/* THE carving function: all rows in the table's order. Count mode without slabs, place mode with them. */
static void lay_rows(struct pool_plan *plan, struct carve *carves, struct slab *slabs)
{
    for (int i = 0; i < POOL_COUNT; i++) {
        lay_row(&plan->rows[i], carves, slabs == NULL ? NULL : &slabs[i]);
    }
    for (int i = 0; i < DOMAIN_COUNT; i++) {
        carve_finish(&carves[i]);
    }
}

/* Fills what does not depend on the place. False on overflow. */
static bool measure_rows(struct pool_plan *plan, const struct pool_sizes *sizes, const struct pool_limits *limits)
{
    for (int i = 0; i < POOL_COUNT; i++) {
        struct pool_plan_row *row = &plan->rows[i];

        *row =
            (struct pool_plan_row){.name = facts[i].name, .when_empty = facts[i].when_empty, .domain = facts[i].domain};
        measure_row((enum pool)i, sizes, limits, plan->kv_pages, row);
        if (!sum_holders(row)) {
            return false;
        }
        row->stride_bytes = slab_stride_bytes(row->element_bytes);
        if (__builtin_mul_overflow(row->stride_bytes, (uint64_t)row->count, &row->bytes)) {
            return false;
        }
    }
    return true;
}

bool pools_plan(const struct pool_sizes *sizes, const struct pool_limits *limits, uint32_t kv_pages,
                struct pool_plan *plan)
{
    struct carve carves[DOMAIN_COUNT];

    assert(sizes != NULL && limits != NULL);
    assert(plan != NULL);
    memset(plan, 0, sizeof *plan);
    plan->kv_pages = kv_pages;
    if (!measure_rows(plan, sizes, limits)) {
        return false;
    }
    for (int i = 0; i < DOMAIN_COUNT; i++) {
        carve_count(&carves[i]);
    }
    lay_rows(plan, carves, NULL);
    for (int i = 0; i < DOMAIN_COUNT; i++) {
        if (carves[i].has_overflowed) {
            return false;
        }
        plan->range_bytes[i] = carves[i].offset_bytes;
        plan->domain_bytes[i] = carve_memory_bytes(&carves[i]);
        if (__builtin_add_overflow(plan->total_bytes, plan->domain_bytes[i], &plan->total_bytes)) {
            return false;
        }
    }
    plan->books_bytes = plan->total_bytes;
    for (int i = 0; i < POOL_COUNT; i++) {
        assert(plan->books_bytes >= plan->rows[i].bytes);
        plan->books_bytes -= plan->rows[i].bytes;
    }
    return true;
}

bool pools_open(const struct pool_plan *plan)
{
    struct carve carves[DOMAIN_COUNT];

    seal_assert_open();
    assert(!state.is_open);
    state.plan = *plan;
    for (int i = 0; i < DOMAIN_COUNT; i++) {
        enum domain domain = (enum domain)i;
        if (plan->range_bytes[i] == 0) {
            carve_count(&carves[i]);
            continue;
        }
        void *range = domain_reserve(domain, plan->range_bytes[i]);
        if (range == NULL || !domain_populate(domain, range, plan->range_bytes[i])) {
            return false;
        }
        carve_place(&carves[i], range, plan->range_bytes[i]);
    }
    lay_rows(&state.plan, carves, state.slabs);
    for (int i = 0; i < DOMAIN_COUNT; i++) {
        assert(carves[i].offset_bytes == plan->range_bytes[i]);
        assert(carve_memory_bytes(&carves[i]) == plan->domain_bytes[i]);
    }
    state.is_open = true;
    return true;
}

void pools_set_guards(bool is_on)
{
    assert(!state.is_open);
    state.has_guards = is_on;
}

static struct slab *slab_of(enum pool pool)
{
    assert(pool < POOL_COUNT);
    assert(state.is_open);
    return &state.slabs[pool];
}

static struct slab *owned_slab_of(enum pool pool)
{
    struct slab *slab = slab_of(pool);
    const void *owner = atomic_load_explicit(&state.owners[pool], memory_order_relaxed);

    assert(owner == NULL || owner == &thread_mark);
    return slab;
}

void pools_adopt(enum pool pool)
{
    assert(pool < POOL_COUNT);
    atomic_store_explicit(&state.owners[pool], &thread_mark, memory_order_relaxed);
}

/* True if a test wants this get to fail. */
static bool is_injected(enum pool pool)
{
    struct injection *injection = &state.injections[pool];
    int refusal = atomic_load_explicit(&injection->refusal, memory_order_relaxed);

    if (refusal == POOLS_REFUSE_NEVER) {
        return false;
    }
    uint64_t gets_left = atomic_load_explicit(&injection->gets_left, memory_order_relaxed);
    if (gets_left > 0) {
        atomic_store_explicit(&injection->gets_left, gets_left - 1, memory_order_relaxed);
        return false;
    }
    if (refusal == POOLS_REFUSE_ONCE) {
        atomic_store_explicit(&injection->refusal, POOLS_REFUSE_NEVER, memory_order_relaxed);
    }
    return true;
}

slab_handle pools_get(enum pool pool)
{
    struct slab *slab = owned_slab_of(pool);

    if (is_injected(pool)) {
        slab_refuse(slab);
        return SLAB_NONE;
    }
    return slab_get(slab);
}

void pools_put(enum pool pool, slab_handle handle)
{
    slab_put(owned_slab_of(pool), handle);
}

void *pools_at(enum pool pool, slab_handle handle)
{
    return slab_at(slab_of(pool), handle);
}

slab_handle pools_held(enum pool pool, uint32_t index)
{
    return slab_held(slab_of(pool), index);
}

void pools_cache(enum pool pool, slab_handle handle)
{
    slab_cache(owned_slab_of(pool), handle);
}

void pools_uncache(enum pool pool, slab_handle handle)
{
    slab_uncache(owned_slab_of(pool), handle);
}

void *pools_base(enum pool pool)
{
    return slab_of(pool)->elements;
}

uint64_t pools_element_bytes(enum pool pool)
{
    return slab_of(pool)->element_bytes;
}

uint64_t pools_stride_bytes(enum pool pool)
{
    return slab_of(pool)->stride_bytes;
}

const char *pools_name(enum pool pool)
{
    assert(pool < POOL_COUNT);
    return facts[pool].name;
}

const char *pools_when_empty(enum pool pool)
{
    assert(pool < POOL_COUNT);
    return facts[pool].when_empty;
}

enum domain pools_domain(enum pool pool)
{
    assert(pool < POOL_COUNT);
    return facts[pool].domain;
}

uint32_t pools_capacity(enum pool pool)
{
    return slab_of(pool)->count;
}

uint32_t pools_used(enum pool pool)
{
    return slab_used(slab_of(pool));
}

uint32_t pools_cached(enum pool pool)
{
    return atomic_load_explicit(&slab_of(pool)->cached_count, memory_order_relaxed);
}

uint32_t pools_high_water(enum pool pool)
{
    return atomic_load_explicit(&slab_of(pool)->used_high_water, memory_order_relaxed);
}

uint64_t pools_refused(enum pool pool)
{
    return atomic_load_explicit(&slab_of(pool)->refused_count, memory_order_relaxed);
}

const struct pool_plan *pools_opened_plan(void)
{
    assert(state.is_open);
    return &state.plan;
}

void pools_seal(void)
{
    assert(state.is_open);
    assert(domain_file_map_count() == 0);
    (void)resident_touch(); /* a refusal costs a page fault later, no more */
    for (int i = 0; i < POOL_COUNT; i++) {
        state.idle_used[i] = pools_used((enum pool)i);
    }
    if (state.pending.is_set) {
        pools_refuse(state.pending.pool, state.pending.n, state.pending.refusal);
    }
    seal_close();
}

int64_t pools_excess(enum pool pool)
{
    assert(pool < POOL_COUNT);
    return (int64_t)pools_used(pool) - (int64_t)state.idle_used[pool];
}

void pools_refuse(enum pool pool, uint64_t n, enum pools_refusal refusal)
{
    assert(pool < POOL_COUNT);
    assert(refusal <= POOLS_REFUSE_FROM_THEN_ON);
    atomic_store_explicit(&state.injections[pool].gets_left, n, memory_order_relaxed);
    atomic_store_explicit(&state.injections[pool].refusal, (int)refusal, memory_order_relaxed);
}

bool pools_refuse_text(const char *text)
{
    assert(text != NULL);
    const char *colon = strchr(text, ':');

    for (int i = 0; colon != NULL && i < POOL_COUNT; i++) {
        const char *name = facts[i].name;
        if (strlen(name) != (size_t)(colon - text) || strncmp(name, text, (size_t)(colon - text)) != 0) {
            continue;
        }
        const char *at = colon + 1;
        uint64_t n = 0;
        for (; *at >= '0' && *at <= '9' && n < UINT32_MAX; at++) {
            n = n * 10 + (uint64_t)(*at - '0');
        }
        bool is_once = strcmp(at, ":once") == 0;
        if (at == colon + 1 || (*at != '\0' && !is_once)) {
            return false;
        }
        state.pending.is_set = true;
        state.pending.pool = (enum pool)i;
        state.pending.n = n;
        state.pending.refusal = is_once ? POOLS_REFUSE_ONCE : POOLS_REFUSE_FROM_THEN_ON;
        return true;
    }
    return false;
}
