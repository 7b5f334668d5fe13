/* The real scheduler, admission, KV pages, caches and requests under a seeded crowd, with a fake clock and fake
 * arithmetic.
 *
 * The fake model is a hash: the entry of a token in the KV is a function of the entry before it, of the token and of
 * its picture, read back through the page lists. So a page that is shared, copied or evicted wrongly gives a wrong
 * answer. SIM_SEEDS=N runs N seeds; SIM_SEED=N runs that one alone and prints what happens.
 */
#include "engine/sched.h"
#include "tests/engine/engine_pools.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RUNNING = 6,
    KV_PAGES = 40,
    CONTEXT = 320,
    PICTURE_PAGES = 2,
    CACHE_PAGES = 3,
    REQUESTS = 64,
    IMAGE_ID = 9,
    CHOICES = 4,
    DIGESTS = 7, /* picture 6 is damaged */
    BAD_DIGEST = 6,
};

struct sim {
    struct sched sched;
    uint64_t random;
    uint64_t tick;
    uint32_t submitted, ended, finished, refused, cancelled;
    uint64_t numbers, shared_starts; /* choices that began where another one was */
    uint32_t job_ticks, encode_ticks;
    uint32_t page_limit;
    bool is_loud, has_leavers;
    struct request *live[REQUESTS];
    uint32_t live_count;
    uint64_t pauses;
};

static struct sim sim;
static void *sched_memory;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint32_t draw(uint32_t bound)
{
    sim.random += 0x9e3779b97f4a7c15u;
    return (uint32_t)(mix(sim.random) >> 33) % bound;
}

/* What token `index` adds: itself, and its place in its picture. */
static uint64_t token_value(const struct request *request, uint32_t index)
{
    uint64_t value = (uint32_t)request->tokens[index];
    for (uint32_t i = 0; i < request->picture_count; i++) {
        const struct picture *picture = &request->pictures[i];
        if (index >= picture->first_token && index < picture->first_token + picture->token_count) {
            value += mix(picture->digest[0] + 1000) + index - picture->first_token;
        }
    }
    return mix(value + 77);
}

static int32_t answer_of(uint64_t entry, uint32_t choice)
{
    return 20 + (int32_t)(mix(entry + choice) % 5);
}

static uint64_t *entry_at(const struct sched_slot *slot, uint32_t index)
{
    unsigned char *base = pools_base(POOL_KV_PAGE);
    uint32_t page = slot->pages[index / KV_PAGE_TOKENS];
    return (uint64_t *)(void *)(base + page * pools_stride_bytes(POOL_KV_PAGE)) + index % KV_PAGE_TOKENS;
}

static void compute(const struct sched_share *share)
{
    struct sched_slot *slot = &sim.sched.slots[share->slot];
    for (uint32_t i = share->first; i < share->first + share->count; i++) {
        uint64_t before = i == 0 ? 0 : *entry_at(slot, i - 1);
        *entry_at(slot, i) = mix(before + token_value(slot->request, i));
    }
}

/* The answer that the request gets alone. */
static bool answer_is_right(const struct request *request)
{
    uint64_t entry = 0;
    uint32_t end = request->prompt_tokens + request->max_new_tokens;
    for (uint32_t i = 0; i + 1 < end; i++) {
        entry = mix(entry + token_value(request, i));
        if (i + 1 >= request->prompt_tokens && request->tokens[i + 1] != answer_of(entry, request->choice)) {
            return false;
        }
    }
    return true;
}

static void add_pictures(struct request *request)
{
    uint32_t wanted = draw(3) == 0 ? 1 + draw(5) : 0;
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t digest = draw(10) == 0 ? BAD_DIGEST : draw(DIGESTS - 1);
        uint32_t tokens = 1 + digest * 23 % (PICTURE_PAGES * MM_PAGE_TOKENS);
        if (request->prompt_tokens + tokens + 3 >= CONTEXT - 2) {
            return;
        }
        struct picture *picture = &request->pictures[request->picture_count++];
        request->tokens[request->prompt_tokens++] = 7;
        *picture = (struct picture){.token_count = tokens,
                                    .first_token = request->prompt_tokens,
                                    .grid_h = 2,
                                    .grid_w = (uint16_t)(2 * tokens),
                                    .message_index = 0,
                                    .part_index = i};
        memset(picture->digest, 0, sizeof picture->digest);
        picture->digest[0] = (unsigned char)digest;
        for (uint32_t k = 0; k < tokens; k++) {
            request->tokens[request->prompt_tokens++] = IMAGE_ID;
        }
        request->tokens[request->prompt_tokens++] = 8;
    }
}

/* REQUEST and TOKENS, both or none: false. */
static bool take_elements(slab_handle *request, slab_handle *tokens)
{
    *request = pools_get(POOL_REQUEST);
    if (!slab_is_some(*request)) {
        return false;
    }
    *tokens = pools_get(POOL_TOKENS);
    if (!slab_is_some(*tokens)) {
        pools_put(POOL_REQUEST, *request);
        return false;
    }
    return true;
}

static void submit(struct request *request, slab_handle tokens)
{
    request->body = (unsigned char *)(uintptr_t)tokens.index; /* remembered for the way home */
    sim.live[sim.live_count++] = request;
    sim.submitted++;
    sched_submit(&sim.sched, request);
}

/* Other choices of a request that was submitted just now: all or none. */
static void add_choices(struct request *first)
{
    slab_handle handles[CHOICES - 1], tokens[CHOICES - 1];
    uint32_t count = draw(CHOICES);
    for (uint32_t i = 0; i < count; i++) {
        if (sim.live_count + count > REQUESTS || !take_elements(&handles[i], &tokens[i])) {
            while (i-- > 0) {
                pools_put(POOL_TOKENS, tokens[i]);
                pools_put(POOL_REQUEST, handles[i]);
            }
            return;
        }
    }
    first->choice_count = 1 + count;
    for (uint32_t i = 0; i < count; i++) {
        struct request *request = pools_at(POOL_REQUEST, handles[i]);
        uint32_t queue_next = first->queue_next;
        first->queue_next = UINT32_MAX; /* as it was when the choices were made */
        request_open_choice(request, handles[i].index, ++sim.numbers, i + 1, first, pools_at(POOL_TOKENS, tokens[i]));
        first->queue_next = queue_next;
        request->max_new_tokens = 1 + draw(first->max_new_tokens); /* as if stopped early */
        submit(request, tokens[i]);
    }
}

static void arrive(void)
{
    slab_handle handle, tokens;
    if (!take_elements(&handle, &tokens)) {
        return;
    }
    struct request *request = pools_at(POOL_REQUEST, handle);
    request_open(request, handle.index, ++sim.numbers, sim.tick, 0);
    request->tokens = pools_at(POOL_TOKENS, tokens);
    uint32_t family = draw(4), length = 1 + draw(90);
    for (uint32_t i = 0; i < length; i++) { /* few families, so that beginnings are shared */
        request->tokens[i] = (int32_t)(100 + family * 10 + mix(family + i / (draw(40) == 0 ? 1 : 1000)) % 3);
    }
    request->prompt_tokens = length;
    add_pictures(request);
    uint32_t room = CONTEXT - request->prompt_tokens;
    request->max_new_tokens = 1 + draw(draw(3) == 0 ? room : (room < 40 ? room : 40));
    submit(request, tokens);
    if (draw(4) == 0) {
        add_choices(request);
    }
}

static void take_home(void)
{
    struct request *request;
    while ((request = sched_take_ended(&sim.sched)) != NULL) {
        bool is_cancelled = atomic_load(&request->is_cancelled);
        bool has_bad = false;
        sim.shared_starts += request->choice > 0 && request->cached_tokens + 1 == request->prompt_tokens;
        for (uint32_t i = 0; i < request->picture_count; i++) {
            has_bad = has_bad || request->pictures[i].digest[0] == BAD_DIGEST;
        }
        if (atomic_load(&request->finish) == FINISH_LENGTH) {
            CU_ASSERT(answer_is_right(request));
            CU_ASSERT(!has_bad);
            CU_ASSERT(atomic_load(&request->is_body_free));
            sim.finished++;
        } else if (request->err != ERR_OK) {
            CU_ASSERT(has_bad && request->err == ERR_BAD_IMAGE);
            sim.refused++;
        } else {
            CU_ASSERT(is_cancelled);
            sim.cancelled++;
        }
        sim.ended++;
        for (uint32_t i = 0; i < sim.live_count; i++) {
            if (sim.live[i] == request) {
                sim.live[i] = sim.live[--sim.live_count];
                break;
            }
        }
        pools_put(POOL_TOKENS, pools_held(POOL_TOKENS, (uint32_t)(uintptr_t)request->body));
        pools_put(POOL_REQUEST, pools_held(POOL_REQUEST, request->index));
    }
}

static void step(void)
{
    static struct sched_share shares[RUNNING + 1];
    uint32_t count = sched_plan(&sim.sched, draw(4) == 0 ? 200 : 1 + draw(40), shares);
    for (uint32_t i = 0; i < count; i++) {
        compute(&shares[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        sched_advance(&sim.sched, &shares[i]);
    }
    sched_admit(&sim.sched);
    for (uint32_t i = 0; i < count; i++) {
        struct sched_slot *slot = &sim.sched.slots[shares[i].slot];
        struct request *request = slot->request;
        if (!shares[i].wants_logits) {
            continue;
        }
        int32_t token = answer_of(*entry_at(slot, slot->computed - 1), request->choice);
        sched_append(&sim.sched, shares[i].slot, token);
        if (slot->known == request->prompt_tokens + request->max_new_tokens) {
            atomic_store(&request->finish, FINISH_LENGTH);
            sched_end(&sim.sched, shares[i].slot);
        }
    }
}

static void work_on_pictures(void)
{
    uint32_t feature;
    slab_handle pixels;
    if (!sim.sched.is_decoding && sched_next_job(&sim.sched)) {
        sim.job_ticks = draw(6);
    } else if (sim.sched.is_decoding && sim.job_ticks-- == 0) {
        bool is_bad = sim.sched.job.request->pictures[sim.sched.job.picture].digest[0] == BAD_DIGEST;
        bool is_dropped = atomic_load(&sim.sched.job.is_cancelled);
        sched_job_done(&sim.sched, is_dropped ? ERR_CLIENT_GONE : is_bad ? ERR_BAD_IMAGE : ERR_OK, "damaged");
    }
    if (sim.sched.encoding != MM_NONE && sched_encode_is_unwanted(&sim.sched)) {
        sched_drop_encode(&sim.sched);
    }
    if (sched_next_encode(&sim.sched, &feature, &pixels)) {
        sim.encode_ticks = draw(5);
    } else if (sim.sched.encoding != MM_NONE && sim.encode_ticks-- == 0) {
        sched_encoded(&sim.sched);
    }
}

static void tick(uint32_t wanted)
{
    static const enum pool refusable[] = {POOL_KV_PAGE, POOL_PREFIX, POOL_PAGE_LIST, POOL_FEATURE,
                                          POOL_MM_PAGE, POOL_PIXELS, POOL_REQUEST,   POOL_TOKENS};
    sim.tick++;
    if (draw(60) == 0) {
        pools_refuse(refusable[draw(8)], draw(4), POOLS_REFUSE_ONCE);
    }
    while (sim.submitted < wanted && draw(3) == 0 && sim.live_count < REQUESTS) {
        arrive();
    }
    if (sim.has_leavers && draw(25) == 0 && sim.live_count > 0) { /* a leaving client would break a deadlock */
        atomic_store(&sim.live[draw(sim.live_count)]->is_cancelled, true);
    }
    sched_sweep(&sim.sched);
    sched_admit(&sim.sched);
    step();
    work_on_pictures();
    sim.pauses += sim.sched.paused_count;
    sched_check(&sim.sched);
    take_home();
}

/* The first pool that holds more than an idle scheduler does, by name; NULL: none. */
static const char *busy_pool(void)
{
    for (int i = 0; i < POOL_COUNT; i++) {
        uint32_t idle = i == POOL_KV_PAGE || i == POOL_PAGE_LIST ? 1 : 0; /* /health_generate's */
        if (pools_used((enum pool)i) != idle) {
            return pools_name((enum pool)i);
        }
    }
    return NULL;
}

static void close_sched(void)
{
    CU_ASSERT(sched_flush(&sim.sched) == ERR_OK);
    kv_release(&sim.sched.kv, sim.sched.health_page);
    pools_put(POOL_PAGE_LIST, sim.sched.slots[RUNNING].page_list);
    for (int i = 0; i < POOL_COUNT; i++) {
        pools_refuse((enum pool)i, 0, POOLS_REFUSE_NEVER);
        CU_ASSERT(pools_used((enum pool)i) == 0 && pools_cached((enum pool)i) == 0);
    }
}

/* Runs one seed to its end; returns false if it does not end. */
static bool run_seed(uint64_t seed, bool is_unsafe)
{
    struct sched_limits limits = {.running_requests = RUNNING,
                                  .picture_pages = PICTURE_PAGES,
                                  .has_prefix_cache = seed % 8 != 7,
                                  .is_unsafe = is_unsafe};
    bool is_loud = sim.is_loud;
    uint64_t last_end = 0;
    uint32_t last_ended = 0, wanted = 30;

    memset(&sim, 0, sizeof sim);
    sim.is_loud = is_loud;
    sim.has_leavers = !is_unsafe && seed % 4 != 0;
    sim.random = seed * 0x2545f4914f6cdd1du;
    sched_open(&sim.sched, &limits, sched_memory);
    while (sim.submitted < wanted || sim.ended < sim.submitted) {
        tick(wanted);
        if (sim.ended != last_ended) {
            last_ended = sim.ended;
            last_end = sim.tick;
        }
        if (sim.tick - last_end > 20000) {
            return false;
        }
        if (sim.is_loud) {
            printf("tick %lu: started %u paused %u queued %u available %u ended %u\n", (unsigned long)sim.tick,
                   sim.sched.started_count, sim.sched.paused_count, sim.sched.queued_count, kv_available(&sim.sched.kv),
                   sim.ended);
        }
    }
    while (sim.sched.is_decoding || sim.sched.encoding != MM_NONE) {
        tick(0);
    }
    CU_ASSERT(sim.finished + sim.refused + sim.cancelled == sim.ended);
    const char *busy = busy_pool();
    if (busy != NULL) {
        printf("not idle at the end: %s\n", busy);
    }
    CU_ASSERT_PTR_NULL(busy);
    close_sched();
    return true;
}

static void every_request_ends_with_its_own_answer(void)
{
    const char *one = getenv("SIM_SEED"), *many = getenv("SIM_SEEDS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one != NULL ? 1 : many != NULL ? strtoull(many, NULL, 10) : 300;
    uint64_t pauses = 0, cached = 0, hits = 0, shared = 0;

    sim.is_loud = one != NULL;
    for (uint64_t seed = first; seed < first + count; seed++) {
        unsigned int failures = CU_get_number_of_failures();
        bool has_ended = run_seed(seed, false);
        pauses += sim.pauses;
        cached += sim.sched.cached_tokens;
        shared += sim.shared_starts;
        hits += sim.sched.mm.hit_count;
        CU_ASSERT_FATAL(has_ended);
        if (CU_get_number_of_failures() != failures) {
            printf("replay: SIM_SEED=%lu build/release/tests/sim/test_sim\n", (unsigned long)seed);
            return;
        }
    }
    if (many != NULL) {
        printf("%lu seeds: %lu pauses, %lu cached tokens, %lu pictures found again, %lu choices that shared a prompt\n",
               (unsigned long)count, (unsigned long)pauses, (unsigned long)cached, (unsigned long)hits,
               (unsigned long)shared);
    }
    CU_ASSERT(pauses > 0 && cached > 0 && hits > 0 && shared > 0);
}

/* True if the seed does not end; tried in a child, whose pools stay as they are. */
static uint32_t is_caught_locked(uint64_t seed)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        _exit(run_seed(seed, true) ? 0 : 7);
    }
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

/* A page that somebody forgot is named at the end, in a child: its pools stay as they are. */
static void a_leaked_element_is_named_with_its_pool(void)
{
    static const enum pool leaked[] = {POOL_KV_PAGE, POOL_PAGE_LIST, POOL_FEATURE, POOL_PIXELS};
    for (size_t i = 0; i < sizeof leaked / sizeof leaked[0]; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            (void)run_seed(5, false);
            (void)pools_get(leaked[i]); /* nobody gives it back */
            struct sched_limits limits = {.running_requests = RUNNING, .picture_pages = PICTURE_PAGES};
            sched_open(&sim.sched, &limits, sched_memory);
            const char *busy = busy_pool();
            _exit(busy != NULL && strcmp(busy, pools_name(leaked[i])) == 0 ? 0 : 1);
        }
        (void)waitpid(child, &status, 0);
        CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* With the check off the same crowd locks up: everybody holds pages and waits for one more. */
static void without_the_safety_check_the_deadlock_is_found(void)
{
    uint32_t locked_count = 0;
    for (uint64_t seed = 1; seed <= 40 && locked_count == 0; seed++) {
        locked_count += is_caught_locked(seed);
    }
    CU_ASSERT(locked_count > 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_request_ends_with_its_own_answer),
        CASE(a_leaked_element_is_named_with_its_pool),
        CASE(without_the_safety_check_the_deadlock_is_found),
        {NULL, NULL},
    };
    engine_pools_open(&(struct engine_pools){.kv_pages = KV_PAGES,
                                             .running_requests = RUNNING,
                                             .requests = REQUESTS - 1,
                                             .context_tokens = CONTEXT,
                                             .picture_pages = PICTURE_PAGES,
                                             .cache_pages = CACHE_PAGES});
    sched_memory = harness_memory(sched_bytes(RUNNING));
    return harness_run(argc, argv, "sim/sim", cases, NULL);
}
