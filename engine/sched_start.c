/* sched_start: who may start, who may have one more page. Design §5.
 *
 * Always true: the started requests are in a safe state; a request starts with all pages of its prompt or not at all;
 * nothing starts while one is paused; the queue's first starts first, except that a choice waits while another one of
 * the same request computes their prompt.
 */
#include "engine/sched.h"
#include "engine/sched_inside.h"
#include "pools/pools.h"

#include <assert.h>

static uint32_t pages_for(uint32_t tokens)
{
    return (tokens + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
}

/* The started requests as rows; `grown`, if it is one of them, with one page more. */
static uint32_t fill_rows(struct sched *sched, const struct sched_slot *grown)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sched->started_count; i++) {
        const struct sched_slot *slot = &sched->slots[sched->ages[i]];
        uint32_t page_count = slot->page_count + (slot == grown);
        if (slot->state == SLOT_LEAVING) {
            continue;
        }
        assert(page_count <= slot->claim_pages);
        sched->rows[count++] = (struct admit_row){.pages = slot->pages,
                                                  .page_count = page_count,
                                                  .shared_count = slot->shared_count,
                                                  .need = slot->claim_pages - page_count};
    }
    return count;
}

bool slot_grow(struct sched *sched, struct sched_slot *slot)
{
    uint32_t available = kv_available(&sched->kv);

    if (slot->computed < slot->page_count * KV_PAGE_TOKENS) {
        return true;
    }
    assert(!slot->is_health);
    if (available == 0) {
        return false;
    }
    if (!sched->limits.is_unsafe) {
        uint32_t count = fill_rows(sched, slot);
        if (!admit_is_safe(&sched->kv, sched->rows, count, available - 1, sched->work)) {
            return false;
        }
    }
    uint32_t page = prefix_take(&sched->prefix);
    if (page == KV_NONE) {
        return false;
    }
    slot->pages[slot->page_count++] = page;
    return true;
}

/* True if `slot`, which holds the pages that it found in the cache, may start with `fresh` more. */
static bool may_start(struct sched *sched, const struct sched_slot *slot, uint32_t fresh)
{
    uint32_t available = kv_available(&sched->kv);

    if (fresh > available) {
        return false;
    }
    if (sched->limits.is_unsafe) {
        return true;
    }
    uint32_t count = fill_rows(sched, NULL);
    sched->rows[count++] = (struct admit_row){.pages = slot->pages,
                                              .page_count = slot->page_count + fresh,
                                              .shared_count = slot->shared_count,
                                              .need = slot->claim_pages - slot->page_count - fresh};
    return admit_is_safe(&sched->kv, sched->rows, count, available - fresh, sched->work);
}

/* All fresh pages, or none. */
static bool take_pages(struct sched *sched, struct sched_slot *slot, uint32_t fresh)
{
    uint32_t held_before = slot->page_count;

    for (uint32_t i = 0; i < fresh; i++) {
        uint32_t page = prefix_take(&sched->prefix);
        if (page == KV_NONE) {
            prefix_release_list(&sched->prefix, slot->pages + held_before, slot->page_count - held_before);
            slot->page_count = held_before;
            return false;
        }
        slot->pages[slot->page_count++] = page;
    }
    return true;
}

/* Takes the prompt's pages: what the cache has, then fresh ones; the first fresh one begins as a copy where the cache
 * goes on for part of a page. The copied page is held meanwhile; if that is one page too many, it is not copied. */
static bool take_prompt(struct sched *sched, struct sched_slot *slot)
{
    struct prefix_key key = slot_key(slot, slot->request->prompt_tokens);
    struct prefix_hit hit;

    /* The last token is always computed: its logits are what was asked for. */
    prefix_match(&sched->prefix, &key, key.count - 1, slot->pages, &hit);
    slot->page_count = slot->shared_count = hit.page_count;
    slot->node = hit.node;
    slot->computed = hit.page_count * KV_PAGE_TOKENS;
    uint32_t fresh = pages_for(key.count) - hit.page_count;
    uint32_t source = hit.partial_node == KV_NONE ? KV_NONE : prefix_page(hit.partial_node);
    if (source != KV_NONE) {
        prefix_hold(&sched->prefix, source);
        if (!may_start(sched, slot, fresh)) {
            prefix_release(&sched->prefix, source);
            source = KV_NONE;
        }
    }
    bool is_safe = source != KV_NONE || may_start(sched, slot, fresh);
    bool is_taken = is_safe && take_pages(sched, slot, fresh);
    if (is_taken && source != KV_NONE) {
        kv_copy(slot->pages[hit.page_count], source);
        slot->computed += hit.partial_tokens;
    }
    if (source != KV_NONE) {
        prefix_release(&sched->prefix, source);
    }
    if (!is_taken) {
        prefix_release_list(&sched->prefix, slot->pages, slot->page_count);
        /* Unsafe: not before pages come back. Refused by a pool, which only tests do: the next tick tries again. */
        sched->blocked_gains = is_safe ? UINT64_MAX : sched->kv.gains;
    }
    return is_taken;
}

/* The choice of the same request whose prompt is in the KV, or NULL. `*is_coming`: one is computing it. */
static struct sched_slot *find_twin(struct sched *sched, const struct request *request, bool *is_coming)
{
    *is_coming = false;
    for (uint32_t i = 0; request->choice_count > 1 && i < sched->started_count; i++) {
        struct sched_slot *slot = &sched->slots[sched->ages[i]];
        if (slot->state == SLOT_LEAVING || slot->request->group != request->group) {
            continue;
        }
        if (slot->state == SLOT_DECODE || slot->state == SLOT_PAUSED) {
            return slot;
        }
        *is_coming = true;
    }
    return NULL;
}

/* Takes the prompt's pages from a choice that has computed them: the whole ones by reference, with or without a prefix
 * cache, the last one as a copy. */
static bool take_twin(struct sched *sched, struct sched_slot *slot, struct sched_slot *twin)
{
    /* The last token is always computed: its logits are what was asked for. */
    uint32_t have = slot->request->prompt_tokens - 1, whole = have / KV_PAGE_TOKENS;

    assert(twin->computed > have && twin->request->prompt_tokens == have + 1);
    for (uint32_t i = 0; i < whole; i++) {
        slot->pages[i] = twin->pages[i];
        prefix_hold(&sched->prefix, slot->pages[i]);
    }
    slot->page_count = slot->shared_count = whole;
    twin->shared_count = twin->shared_count < whole ? whole : twin->shared_count;
    slot->node = whole == 0 ? KV_NONE : sched->kv.pages[slot->pages[whole - 1]].node;
    slot->is_sharing = slot->is_sharing && (whole == 0 || slot->node != KV_NONE);
    bool is_safe = may_start(sched, slot, 1);
    if (!is_safe || !take_pages(sched, slot, 1)) {
        prefix_release_list(&sched->prefix, slot->pages, slot->page_count);
        sched->blocked_gains = is_safe ? UINT64_MAX : sched->kv.gains;
        return false;
    }
    if (have % KV_PAGE_TOKENS > 0) {
        kv_copy(slot->pages[whole], twin->pages[whole]);
    }
    slot->computed = have;
    return true;
}

static struct sched_slot *free_slot(struct sched *sched)
{
    for (uint32_t i = 0; i < sched->limits.running_requests; i++) {
        if (sched->slots[i].state == SLOT_FREE) {
            return &sched->slots[i];
        }
    }
    return NULL;
}

/* Starts the request in the slot. False: nothing changed. */
static bool start_request(struct sched *sched, struct sched_slot *slot, struct request *request)
{
    slab_handle list = pools_get(POOL_PAGE_LIST);
    bool is_coming;
    struct sched_slot *twin = find_twin(sched, request, &is_coming);

    if (!slab_is_some(list)) {
        return false;
    }
    *slot = (struct sched_slot){.state = SLOT_FREE,
                                .request = request,
                                .is_sharing = sched->limits.has_prefix_cache,
                                .page_list = list,
                                .pages = pools_at(POOL_PAGE_LIST, list),
                                .node = KV_NONE,
                                .claim_pages = pages_for(request->prompt_tokens + request->max_new_tokens - 1),
                                .known = request->prompt_tokens,
                                .features = {MM_NONE, MM_NONE}};
    if (twin != NULL ? !take_twin(sched, slot, twin) : !take_prompt(sched, slot)) {
        pools_put(POOL_PAGE_LIST, list);
        *slot = (struct sched_slot){.state = SLOT_FREE};
        return false;
    }
    slot_event(sched, slot, EVENT_START);
    request->engine_slot = (uint32_t)(slot - sched->slots);
    request->cached_tokens = slot->computed;
    if (request->choice == 0) { /* a prompt counts once */
        sched->prompt_tokens += request->prompt_tokens;
        sched->cached_tokens += slot->computed;
    }
    sched->ages[sched->started_count++] = request->engine_slot;
    slot_pass_pictures(sched, slot);
    return true;
}

/* The first of the queue that does not wait for another choice's prompt, and the one before it. NULL: there is none. */
static struct request *first_ready(struct sched *sched, uint32_t *previous)
{
    *previous = UINT32_MAX;
    for (uint32_t index = sched->queue_first; index != UINT32_MAX;) {
        struct request *request = request_at(index);
        bool is_coming;
        if (find_twin(sched, request, &is_coming) != NULL || !is_coming) {
            return request;
        }
        *previous = index;
        index = request->queue_next;
    }
    return NULL;
}

void sched_admit(struct sched *sched)
{
    struct request *request;
    uint32_t previous;

    for (uint32_t i = 0; i < sched->started_count; i++) {
        struct sched_slot *slot = &sched->slots[sched->ages[i]];
        if (slot->state == SLOT_PAUSED && slot_grow(sched, slot)) {
            slot_event(sched, slot, EVENT_PAGE_GRANTED);
        }
    }
    while (sched->paused_count == 0 && (request = first_ready(sched, &previous)) != NULL) {
        struct sched_slot *slot = free_slot(sched);
        if (slot == NULL || sched->blocked_gains == sched->kv.gains || !start_request(sched, slot, request)) {
            return;
        }
        queue_remove(sched, previous, request);
    }
}

/* For tests: what holds between ticks. */
static void check_slot(const struct sched *sched, const struct sched_slot *slot)
{
    if (slot->state == SLOT_FREE || slot->state == SLOT_LEAVING) {
        assert(slot->page_count == 0 || slot->is_health);
        return;
    }
    assert(slot->request != NULL && slot->page_count <= slot->claim_pages);
    assert(slot->shared_count <= slot->page_count && slot->computed <= slot->known);
    assert(slot->computed <= slot->page_count * KV_PAGE_TOKENS);
    for (uint32_t i = 0; i < slot->page_count; i++) {
        const struct kv_page *page = &sched->kv.pages[slot->pages[i]];
        assert(page->holders > 0);
        assert(i >= slot->shared_count || !slot->is_sharing || page->node != KV_NONE);
        assert(i < slot->shared_count || (page->holders == 1 && page->node == KV_NONE));
    }
}

void sched_check(struct sched *sched)
{
    uint32_t paused_count = 0, held_count = 0, holders = 0, listed = 1; /* the page of /health_generate */

    for (uint32_t i = 0; i <= sched->limits.running_requests; i++) {
        check_slot(sched, &sched->slots[i]);
        paused_count += sched->slots[i].state == SLOT_PAUSED;
        listed += sched->slots[i].is_health ? 0 : sched->slots[i].page_count;
    }
    assert(paused_count == sched->paused_count);
    for (uint32_t i = 0; i < sched->kv.page_count; i++) {
        holders += sched->kv.pages[i].holders;
        held_count += sched->kv.pages[i].holders > 0;
    }
    assert(holders == listed);
    assert(held_count + kv_available(&sched->kv) == sched->kv.page_count);
    assert(pools_used(POOL_KV_PAGE) == held_count);
    uint32_t count = fill_rows(sched, NULL);
    assert(sched->limits.is_unsafe ||
           admit_is_safe(&sched->kv, sched->rows, count, kv_available(&sched->kv), sched->work));
    prefix_check(&sched->prefix);
    mm_check(&sched->mm);
}
