/* sched: the queue, the slots and their states, the rows of a step.
 *
 * Always true between calls: a slot is on `ages` exactly if its state is neither FREE nor that of /health_generate; its
 * pages hold computed tokens, and page_count <= claim_pages; paused_count is the number of PAUSED slots.
 */
#include "engine/sched.h"

#include "engine/sched_inside.h"
#include "pools/pools.h"

#include <assert.h>
#include <string.h>

static const uint8_t transitions[SLOT_STATES][SCHED_EVENTS] = {
    [SLOT_FREE][EVENT_START] = SLOT_PREFILL,
    [SLOT_PREFILL][EVENT_PICTURE_MISSING] = SLOT_WAIT_PICTURE,
    [SLOT_PREFILL][EVENT_PROMPT_DONE] = SLOT_DECODE,
    [SLOT_PREFILL][EVENT_END] = SLOT_FREE,
    [SLOT_PREFILL][EVENT_END_BODY_BUSY] = SLOT_LEAVING,
    [SLOT_WAIT_PICTURE][EVENT_PICTURE_READY] = SLOT_PREFILL,
    [SLOT_WAIT_PICTURE][EVENT_END] = SLOT_FREE,
    [SLOT_WAIT_PICTURE][EVENT_END_BODY_BUSY] = SLOT_LEAVING,
    [SLOT_DECODE][EVENT_PAGE_REFUSED] = SLOT_PAUSED,
    [SLOT_DECODE][EVENT_PAGE_GRANTED] = SLOT_DECODE,
    [SLOT_DECODE][EVENT_END] = SLOT_FREE,
    [SLOT_PAUSED][EVENT_PAGE_REFUSED] = SLOT_PAUSED,
    [SLOT_PAUSED][EVENT_PAGE_GRANTED] = SLOT_DECODE,
    [SLOT_PAUSED][EVENT_END] = SLOT_FREE,
    [SLOT_LEAVING][EVENT_BODY_BACK] = SLOT_FREE,
};

const char *sched_state_name(uint32_t state)
{
    static const char *const names[SLOT_STATES] = {
        [SLOT_BUG] = "queued", /* no slot yet */
        [SLOT_FREE] = "queued",
        [SLOT_PREFILL] = "prefill",
        [SLOT_WAIT_PICTURE] = "wait_picture",
        [SLOT_DECODE] = "decode",
        [SLOT_PAUSED] = "paused",
        [SLOT_LEAVING] = "leaving",
    };

    assert(state < SLOT_STATES);
    return names[state];
}

void slot_event(struct sched *sched, struct sched_slot *slot, enum sched_event event)
{
    assert(slot->state < SLOT_STATES && event < SCHED_EVENTS);
    uint32_t next = transitions[slot->state][event];
    assert(next != SLOT_BUG);
    sched->paused_count -= slot->state == SLOT_PAUSED;
    sched->paused_count += next == SLOT_PAUSED;
    slot->state = next;
}

struct prefix_key slot_key(const struct sched_slot *slot, uint32_t count)
{
    assert(count <= slot->known);
    return (struct prefix_key){.ids = slot->request->tokens,
                               .count = count,
                               .pictures = slot->request->pictures,
                               .picture_count = slot->request->picture_count};
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

uint64_t sched_bytes(uint32_t running_requests)
{
    uint64_t count = running_requests;

    return round_up((count + 1) * sizeof(struct sched_slot)) + round_up(count * sizeof(uint32_t)) +
           round_up(count * sizeof(struct admit_row)) + round_up(count * sizeof(struct admit_work));
}

static void *lay(unsigned char **place, uint64_t bytes)
{
    void *block = *place;

    memset(block, 0, bytes);
    *place += round_up(bytes);
    return block;
}

/* The slot, page and page list that /health_generate never shares. */
static void open_health(struct sched *sched)
{
    struct sched_slot *slot = &sched->slots[sched->limits.running_requests];
    slab_handle list = pools_get(POOL_PAGE_LIST);

    assert(slab_is_some(list));
    sched->health_page = kv_take(&sched->kv);
    assert(sched->health_page != KV_NONE);
    slot->page_list = list;
    slot->pages = pools_at(POOL_PAGE_LIST, list);
    slot->pages[0] = sched->health_page;
    slot->is_health = true;
}

void sched_open(struct sched *sched, const struct sched_limits *limits, void *memory)
{
    unsigned char *place = memory;
    uint64_t count = limits->running_requests;

    assert(count > 0 && (uintptr_t)memory % 64 == 0);
    assert(pools_stride_bytes(POOL_KV_META) == sizeof(struct kv_page));
    memset(sched, 0, sizeof *sched);
    sched->limits = *limits;
    sched->slots = lay(&place, (count + 1) * sizeof(struct sched_slot));
    sched->ages = lay(&place, count * sizeof(uint32_t));
    sched->rows = lay(&place, count * sizeof(struct admit_row));
    sched->work = lay(&place, count * sizeof(struct admit_work));
    assert((uint64_t)(place - (unsigned char *)memory) == sched_bytes(limits->running_requests));
    for (uint32_t i = 0; i <= count; i++) {
        sched->slots[i].state = SLOT_FREE;
    }
    kv_open(&sched->kv, pools_base(POOL_KV_META), pools_capacity(POOL_KV_PAGE));
    prefix_open(&sched->prefix, &sched->kv, limits->has_prefix_cache);
    mm_open(&sched->mm, limits->picture_pages);
    sched->queue_first = sched->queue_last = sched->ended_first = sched->ended_last = UINT32_MAX;
    sched->blocked_gains = UINT64_MAX;
    sched->encoding = MM_NONE;
    for (uint32_t i = 0; i < SLOT_PICTURES; i++) {
        sched->decoded[i] = MM_NONE;
    }
    open_health(sched);
}

/* Lists of requests, linked by queue_next: the queue, and those that ended. */
static void list_push(uint32_t *first, uint32_t *last, struct request *request)
{
    request->queue_next = UINT32_MAX;
    if (*last == UINT32_MAX) {
        *first = request->index;
    } else {
        request_at(*last)->queue_next = request->index;
    }
    *last = request->index;
}

static void list_remove_behind(uint32_t *first, uint32_t *last, uint32_t previous, const struct request *request)
{
    if (previous == UINT32_MAX) {
        *first = request->queue_next;
    } else {
        request_at(previous)->queue_next = request->queue_next;
    }
    if (*last == request->index) {
        *last = previous;
    }
}

void sched_submit(struct sched *sched, struct request *request)
{
    assert(request->prompt_tokens > 0 && request->max_new_tokens > 0);
    assert(request->engine_slot == UINT32_MAX);
    list_push(&sched->queue_first, &sched->queue_last, request);
    sched->queued_count++;
}

void queue_remove(struct sched *sched, uint32_t previous, const struct request *request)
{
    assert(sched->queued_count > 0);
    list_remove_behind(&sched->queue_first, &sched->queue_last, previous, request);
    sched->queued_count--;
    sched->blocked_gains = UINT64_MAX;
}

struct request *sched_take_ended(struct sched *sched)
{
    if (sched->ended_first == UINT32_MAX) {
        return NULL;
    }
    struct request *request = request_at(sched->ended_first);
    list_remove_behind(&sched->ended_first, &sched->ended_last, UINT32_MAX, request);
    return request;
}

bool sched_submit_health(struct sched *sched, struct request *request)
{
    struct sched_slot *slot = &sched->slots[sched->limits.running_requests];

    assert(request->prompt_tokens + request->max_new_tokens - 1 <= KV_PAGE_TOKENS);
    if (slot->state != SLOT_FREE) {
        return false;
    }
    slot_event(sched, slot, EVENT_START);
    slot->request = request;
    slot->page_count = slot->claim_pages = 1;
    slot->known = request->prompt_tokens;
    slot->computed = 0;
    slot->picture = 0;
    for (uint32_t i = 0; i < SLOT_PICTURES; i++) {
        slot->features[i] = MM_NONE;
    }
    request->engine_slot = sched->limits.running_requests;
    return true;
}

/* What is left of a page enters the cache too, so that a later turn goes on inside it. */
static void keep_last_page(struct sched *sched, struct sched_slot *slot)
{
    uint32_t rest = slot->computed - slot->shared_count * KV_PAGE_TOKENS;

    if (!slot->is_sharing || rest == 0 || rest >= KV_PAGE_TOKENS) {
        return;
    }
    struct prefix_key key = slot_key(slot, slot->computed);
    uint32_t node;
    (void)prefix_insert(&sched->prefix, &key, slot->shared_count * KV_PAGE_TOKENS, rest, slot->node,
                        &slot->pages[slot->shared_count], &node);
}

static void publish_holdings(struct request *request, uint32_t state, uint32_t page_lists, uint32_t kv_pages,
                             uint32_t features, uint32_t mm_pages)
{
    assert(state < SLOT_STATES);
    atomic_store_explicit(&request->slot_state, state, memory_order_relaxed);
    atomic_store_explicit(&request->held_page_lists, page_lists, memory_order_relaxed);
    atomic_store_explicit(&request->held_kv_pages, kv_pages, memory_order_relaxed);
    atomic_store_explicit(&request->held_features, features, memory_order_relaxed);
    atomic_store_explicit(&request->held_mm_pages, mm_pages, memory_order_relaxed);
}

void sched_publish_holdings(const struct sched *sched)
{
    for (uint32_t i = 0; i < sched->started_count; i++) {
        const struct sched_slot *slot = &sched->slots[sched->ages[i]];
        uint32_t features = 0, mm_pages = 0;
        for (uint32_t k = 0; k < SLOT_PICTURES; k++) {
            if (slot->features[k] != MM_NONE) {
                features++;
                mm_pages += mm_at(slot->features[k])->page_count;
            }
        }
        publish_holdings(slot->request, slot->state, slot->pages != NULL, slot->page_count, features, mm_pages);
    }
}

/* Other choices may have been passed over in the queue until this one's prompt is whole or gone: so its first ready
 * request may be another one now, about which no verdict is known. */
static void wake_choices(struct sched *sched, const struct request *request)
{
    if (request->choice_count > 1) {
        sched->blocked_gains = UINT64_MAX;
    }
}

/* The slot is free: it leaves the ages, and its request is ended. */
static void vacate(struct sched *sched, struct sched_slot *slot, enum sched_event event)
{
    uint32_t index = (uint32_t)(slot - sched->slots), place = 0;

    publish_holdings(slot->request, SLOT_FREE, 0, 0, 0, 0);
    slot_event(sched, slot, event);
    assert(slot->state == SLOT_FREE);
    if (!slot->is_health) {
        while (sched->ages[place] != index) {
            place++;
            assert(place < sched->started_count);
        }
        sched->started_count--;
        memmove(&sched->ages[place], &sched->ages[place + 1], (sched->started_count - place) * sizeof sched->ages[0]);
    }
    slot->request->engine_slot = UINT32_MAX;
    list_push(&sched->ended_first, &sched->ended_last, slot->request);
    slot->request = NULL;
}

void sched_end(struct sched *sched, uint32_t index)
{
    struct sched_slot *slot = &sched->slots[index];

    assert(index <= sched->limits.running_requests);
    assert(slot->state != SLOT_FREE && slot->state != SLOT_LEAVING);
    wake_choices(sched, slot->request);
    slot_drop_pictures(sched, slot);
    if (!slot->is_health) {
        keep_last_page(sched, slot);
        prefix_release_list(&sched->prefix, slot->pages, slot->page_count);
        pools_put(POOL_PAGE_LIST, slot->page_list);
        slot->pages = NULL;
    }
    slot->page_count = slot->shared_count = slot->claim_pages = 0;
    if (sched->is_decoding && sched->job.slot == index) {
        slot_event(sched, slot, EVENT_END_BODY_BUSY);
        return;
    }
    vacate(sched, slot, EVENT_END);
}

void slot_body_back(struct sched *sched, struct sched_slot *slot)
{
    assert(slot->state == SLOT_LEAVING);
    vacate(sched, slot, EVENT_BODY_BACK);
}

void sched_sweep(struct sched *sched)
{
    uint32_t previous = UINT32_MAX;

    for (uint32_t index = sched->queue_first; index != UINT32_MAX;) {
        struct request *request = request_at(index);
        index = request->queue_next;
        if (!atomic_load_explicit(&request->is_cancelled, memory_order_relaxed)) {
            previous = request->index;
            continue;
        }
        queue_remove(sched, previous, request);
        list_push(&sched->ended_first, &sched->ended_last, request);
    }
    for (uint32_t i = sched->started_count; i > 0; i--) {
        struct sched_slot *slot = &sched->slots[sched->ages[i - 1]];
        if (slot->state != SLOT_LEAVING && atomic_load_explicit(&slot->request->is_cancelled, memory_order_relaxed)) {
            sched_end(sched, sched->ages[i - 1]);
        }
    }
}

void sched_cancel_all(struct sched *sched)
{
    for (uint32_t index = sched->queue_first; index != UINT32_MAX; index = request_at(index)->queue_next) {
        atomic_store_explicit(&request_at(index)->is_cancelled, true, memory_order_relaxed);
    }
    for (uint32_t i = 0; i < sched->started_count; i++) {
        atomic_store_explicit(&sched->slots[sched->ages[i]].request->is_cancelled, true, memory_order_relaxed);
    }
    sched_sweep(sched);
}

/* Rows of the prompt that may be computed now. Moves between PREFILL and WAIT_PICTURE. */
static uint32_t prefill_rows(struct sched *sched, struct sched_slot *slot, uint32_t rows_max)
{
    uint32_t end = slot->request->prompt_tokens;
    uint32_t limit = slot_picture_limit(slot);

    assert(slot->state == SLOT_PREFILL || slot->state == SLOT_WAIT_PICTURE);
    assert(slot->computed < end);
    if (limit <= slot->computed) {
        if (slot->state == SLOT_PREFILL) {
            slot_event(sched, slot, EVENT_PICTURE_MISSING);
        }
        return 0;
    }
    if (slot->state == SLOT_WAIT_PICTURE) {
        slot_event(sched, slot, EVENT_PICTURE_READY);
    }
    end = limit < end ? limit : end;
    return end - slot->computed < rows_max ? end - slot->computed : rows_max;
}

/* Adds the slot's rows of this step, if it has any. */
static void plan_slot(struct sched *sched, uint32_t index, uint32_t *rows_left, struct sched_share *shares,
                      uint32_t *share_count)
{
    struct sched_slot *slot = &sched->slots[index];
    uint32_t count = 0;

    if (slot->state == SLOT_DECODE) {
        assert(slot->known - slot->computed == 1);
        if (!slot_grow(sched, slot)) {
            slot_event(sched, slot, EVENT_PAGE_REFUSED);
            return;
        }
        count = 1;
    } else if (slot->state == SLOT_PREFILL || slot->state == SLOT_WAIT_PICTURE) {
        count = prefill_rows(sched, slot, *rows_left);
        *rows_left -= count;
    }
    if (count > 0) {
        shares[(*share_count)++] = (struct sched_share){.slot = index,
                                                        .first = slot->computed,
                                                        .count = count,
                                                        .wants_logits = slot->computed + count == slot->known};
    }
}

uint32_t sched_plan(struct sched *sched, uint32_t rows_max, struct sched_share *shares)
{
    uint32_t share_count = 0, rows_left = rows_max;
    uint32_t health = sched->limits.running_requests;

    if (sched->slots[health].state != SLOT_FREE) {
        plan_slot(sched, health, &rows_left, shares, &share_count);
    }
    for (uint32_t i = 0; i < sched->started_count; i++) {
        plan_slot(sched, sched->ages[i], &rows_left, shares, &share_count);
    }
    assert(share_count <= sched->limits.running_requests + 1);
    return share_count;
}

/* Offers the pages that are full now to the prefix cache. */
static void share_pages(struct sched *sched, struct sched_slot *slot)
{
    while (slot->is_sharing && (slot->shared_count + 1) * KV_PAGE_TOKENS <= slot->computed) {
        struct prefix_key key = slot_key(slot, slot->computed);
        uint32_t node;
        enum prefix_outcome outcome =
            prefix_insert(&sched->prefix, &key, slot->shared_count * KV_PAGE_TOKENS, KV_PAGE_TOKENS, slot->node,
                          &slot->pages[slot->shared_count], &node);
        if (outcome == PREFIX_REFUSED) {
            slot->is_sharing = false;
            return;
        }
        slot->node = node;
        slot->shared_count++;
    }
}

void sched_advance(struct sched *sched, const struct sched_share *share)
{
    struct sched_slot *slot = &sched->slots[share->slot];

    assert(slot->state == SLOT_PREFILL || slot->state == SLOT_DECODE);
    assert(share->first == slot->computed && share->count > 0);
    slot->computed += share->count;
    assert(slot->computed <= slot->known);
    assert(slot->computed <= slot->page_count * KV_PAGE_TOKENS);
    share_pages(sched, slot);
    slot_pass_pictures(sched, slot);
    if (slot->state == SLOT_PREFILL && slot->computed == slot->request->prompt_tokens) {
        slot_event(sched, slot, EVENT_PROMPT_DONE);
        wake_choices(sched, slot->request);
    }
}

void sched_append(struct sched *sched, uint32_t index, int32_t token)
{
    struct sched_slot *slot = &sched->slots[index];

    assert(slot->state == SLOT_DECODE);
    assert(slot->computed == slot->known);
    assert(slot->known < slot->request->prompt_tokens + slot->request->max_new_tokens);
    slot->request->tokens[slot->known++] = token;
}

bool sched_has_decode(const struct sched *sched)
{
    for (uint32_t i = 0; i < sched->started_count; i++) {
        if (sched->slots[sched->ages[i]].state == SLOT_DECODE) {
            return true;
        }
    }
    return false;
}

uint32_t sched_load(const struct sched *sched)
{
    return sched->started_count + sched->queued_count;
}

enum err sched_flush(struct sched *sched)
{
    if (sched->started_count > 0) {
        return ERR_BUSY;
    }
    prefix_flush(&sched->prefix);
    mm_flush(&sched->mm);
    return ERR_OK;
}
