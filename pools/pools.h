/* pools: the public face of all the server's memory. Every pool is a row of pools/pool_table.h.
 *
 * Always true after pools_open: the sum of all elements, books included, is the plan; nothing is ever added to it.
 */
#ifndef POOLS_POOLS_H
#define POOLS_POOLS_H

#include "pools/domain.h"
#include "pools/plan_input.h"
#include "pools/seal.h"
#include "pools/slab.h"

#include <stdbool.h>
#include <stdint.h>

enum pool {
#define POOL(name, domain, element_bytes, holders, when_empty) POOL_##name,
#define HELD(count, whom)
#include "pools/pool_table.h"
    POOL_COUNT
};

enum { POOL_HOLDERS_MAX = 4 };

/* A term of a pool's count. */
struct pool_holder {
    uint64_t count;
    const char *whom;
};

/* One row of the plan, as it is printed. */
struct pool_plan_row {
    const char *name;
    const char *when_empty;
    enum domain domain;
    uint64_t element_bytes;
    uint64_t stride_bytes; /* from one element to the next */
    uint32_t holder_count;
    struct pool_holder holders[POOL_HOLDERS_MAX];
    uint32_t count;        /* the sum of theirs */
    uint64_t bytes; /* stride_bytes * count */
    uint64_t offset_bytes; /* in its domain's range */
};

/* The whole plan in numbers. */
struct pool_plan {
    struct pool_plan_row rows[POOL_COUNT];
    uint32_t kv_pages;
    uint64_t books_bytes; /* free lists and generations of all pools, alignment: what no row holds */
    uint64_t domain_bytes[DOMAIN_COUNT]; /* memory, books included */
    uint64_t range_bytes[DOMAIN_COUNT];  /* address space: memory plus guard gaps */
    uint64_t total_bytes;                /* of all domains */
};

/* Computes the plan for `kv_pages` pages: the carving function in count mode. False when a size or a sum does not fit
 * 64 bits, or a count does not fit 32. */
bool pools_plan(const struct pool_sizes *sizes, const struct pool_limits *limits, uint32_t kv_pages,
                struct pool_plan *plan);

/* Reserves the domains, backs them with memory, and lays every pool over its place: the same function in place mode.
 * False when the system does not give the memory. Once, before the seal. */
bool pools_open(const struct pool_plan *plan);

/* Takes an element; SLAB_NONE when there is none (counted). Only the pool's owner thread may call get, put, cache,
 * uncache; a pool has no owner until pools_adopt. */
slab_handle pools_get(enum pool pool);
void pools_put(enum pool pool, slab_handle handle);
void *pools_at(enum pool pool, slab_handle handle);

/* The handle of a held element by its index, for those who keep bare indices (page tables). */
slab_handle pools_held(enum pool pool, uint32_t index);

/* Marks a held element as evictable cache and back: it counts as cached, not as used. */
void pools_cache(enum pool pool, slab_handle handle);
void pools_uncache(enum pool pool, slab_handle handle);

/* Start of the pool's memory; element i lies at base + i * stride. NULL when its count is 0. */
void *pools_base(enum pool pool);
uint64_t pools_element_bytes(enum pool pool);
uint64_t pools_stride_bytes(enum pool pool);

/* The calling thread becomes the pool's only owner; from then on get and put by another thread abort. */
void pools_adopt(enum pool pool);

/* Counters: any thread, any time after pools_open. */
const char *pools_name(enum pool pool);
const char *pools_when_empty(enum pool pool);
enum domain pools_domain(enum pool pool);
uint32_t pools_capacity(enum pool pool);
uint32_t pools_used(enum pool pool);       /* held and needed */
uint32_t pools_cached(enum pool pool);     /* held as evictable cache */
uint32_t pools_high_water(enum pool pool); /* largest used so far */
uint64_t pools_refused(enum pool pool);
const struct pool_plan *pools_opened_plan(void);

/* Ends start-up: no file is mapped any more, the program's own pages are made resident (pools/resident.h), what every
 * pool holds now is its idle value, memory is sealed. Once. */
void pools_seal(void);

/* Elements that the pool holds beyond its idle value (what it held at the seal). 0 for every pool when idle. */
int64_t pools_excess(enum pool pool);

/* Test runs: refuses the n-th get from now on (n = 0 is the next), that one only or all from there. */
enum pools_refusal { POOLS_REFUSE_NEVER, POOLS_REFUSE_ONCE, POOLS_REFUSE_FROM_THEN_ON };
void pools_refuse(enum pool pool, uint64_t n, enum pools_refusal refusal);

/* The same from text, "POOL:n" or "POOL:n:once" (environment ASHLAR_REFUSE); it begins to count at the seal. False
 * when the text is malformed or names no pool. */
bool pools_refuse_text(const char *text);

/* Test runs, before pools_open: guard gaps between pools, elements overwritten when given back (ASHLAR_GUARDS=1). */
void pools_set_guards(bool is_on);

#endif
