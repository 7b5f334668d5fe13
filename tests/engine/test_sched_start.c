/* Properties of engine/sched_start.c: whole prompts or nothing, safe growth, pauses that end, beginnings that are
 * reused. */
#include "tests/engine/sched_world.h"

static void finish_all(void)
{
    for (int i = 0; i < 400 && sched_load(&world.sched) > 0; i++) {
        world_step(100);
    }
    while (world_take_ended()) {
    }
    CU_ASSERT_EQUAL(sched_load(&world.sched), 0);
}

static void a_prompt_starts_with_all_its_pages_or_waits(void)
{
    world_open(false);
    struct request *first = world_request(100, 7 * KV_PAGE_TOKENS, 1), *second = world_request(500, 80, 1);
    sched_submit(&world.sched, first);
    sched_submit(&world.sched, second);
    world_step(8);
    CU_ASSERT_EQUAL(world.sched.slots[first->engine_slot].page_count, 7);
    CU_ASSERT_EQUAL(world.sched.slots[second->engine_slot].page_count, 5);
    struct request *third = world_request(900, 1, 1);
    sched_submit(&world.sched, third);
    world_step(8);
    CU_ASSERT_EQUAL(world_state(third), SLOT_FREE); /* no page is free */
    finish_all();
}

static void two_answers_that_may_fill_the_cache_never_lock_up(void)
{
    world_open(false);
    struct request *first = world_request(100, 16, 10 * KV_PAGE_TOKENS), *second = world_request(500, 16, 160);
    sched_submit(&world.sched, first);
    sched_submit(&world.sched, second);
    bool was_paused = false, both_ran = false;
    for (int i = 0; i < 1000 && sched_load(&world.sched) > 0; i++) {
        world_step(100);
        both_ran = both_ran || world.share_count == 2;
        was_paused = was_paused || world.sched.paused_count > 0;
    }
    CU_ASSERT(both_ran && was_paused);
    CU_ASSERT_EQUAL(atomic_load(&first->finish), FINISH_LENGTH);
    CU_ASSERT_EQUAL(atomic_load(&second->finish), FINISH_LENGTH);
    finish_all();
}

static void nothing_starts_while_one_is_paused(void)
{
    world_open(false);
    struct request *requests[3] = {world_request(100, 16, 160), world_request(300, 16, 160), world_request(500, 8, 2)};
    sched_submit(&world.sched, requests[0]);
    sched_submit(&world.sched, requests[1]);
    while (world.sched.paused_count == 0) {
        world_step(100);
    }
    sched_submit(&world.sched, requests[2]);
    while (world.sched.paused_count > 0) {
        CU_ASSERT_EQUAL_FATAL(world_state(requests[2]), SLOT_FREE);
        world_step(100);
    }
    finish_all();
}

static void an_exact_repeat_computes_one_token(void)
{
    for (uint32_t length = 30; length < 36; length++) { /* around two whole pages */
        world_open(true);
        struct request *first = world_request(100, length, 3);
        sched_submit(&world.sched, first);
        finish_all();
        struct request *repeat = world_request(100, length, 3);
        sched_submit(&world.sched, repeat);
        world_step(100);
        CU_ASSERT_EQUAL(repeat->cached_tokens, length - 1);
        CU_ASSERT(world.share_count == 1 && world.shares[0].count == 1);
        finish_all();
        (void)world_is_home();
    }
    world_open(true);
}

static void the_next_turn_reuses_the_answer_too(void)
{
    world_open(true);
    struct request *first = world_request(100, 20, 6);
    sched_submit(&world.sched, first);
    finish_all();
    struct request *next = world_request(100, 60, 3); /* the answer's ids are ones */
    for (uint32_t i = 20; i < 26; i++) {
        next->tokens[i] = 1;
    }
    sched_submit(&world.sched, next);
    world_step(100);
    CU_ASSERT_EQUAL(next->cached_tokens, 25); /* the last token of an answer is never computed */
    finish_all();
}

static void a_beginning_is_shared_while_it_is_in_use(void)
{
    world_open(true);
    struct request *first = world_request(100, 5 * KV_PAGE_TOKENS + 1, 40);
    sched_submit(&world.sched, first);
    world_step(100);
    struct request *second = world_request(100, 5 * KV_PAGE_TOKENS + 1, 4);
    sched_submit(&world.sched, second);
    world_step(100);
    const struct sched_slot *a = &world.sched.slots[first->engine_slot], *b = &world.sched.slots[second->engine_slot];
    CU_ASSERT_EQUAL(second->cached_tokens, 5 * KV_PAGE_TOKENS);
    CU_ASSERT_EQUAL(memcmp(a->pages, b->pages, 5 * sizeof a->pages[0]), 0);
    CU_ASSERT(a->pages[5] != b->pages[5]);
    finish_all();
}

static void a_refused_page_or_list_delays_and_loses_nothing(void)
{
    static const enum pool refused[] = {POOL_KV_PAGE, POOL_PAGE_LIST};
    for (int i = 0; i < 2; i++) {
        for (uint64_t n = 0; n < 3; n++) {
            world_open(true);
            struct request *request = world_request(100, 40, 30);
            sched_submit(&world.sched, request);
            pools_refuse(refused[i], n, POOLS_REFUSE_ONCE);
            finish_all();
            pools_refuse(refused[i], 0, POOLS_REFUSE_NEVER);
            CU_ASSERT_EQUAL(world_is_home(), 0);
        }
    }
    world_open(true);
}

/* Submits a request for `count` choices and one for one behind it. */
static void submit_choices(struct request **choices, uint32_t count, uint32_t prompt_tokens, uint32_t max_new_tokens)
{
    choices[0] = world_request(100, prompt_tokens, max_new_tokens);
    choices[0]->choice_count = count;
    for (uint32_t i = 1; i < count; i++) {
        choices[i] = world_choice(choices[0], i);
    }
    for (uint32_t i = 0; i < count; i++) {
        sched_submit(&world.sched, choices[i]);
    }
}

static void check_choices(bool has_cache)
{
    struct request *choices[3];
    world_open(has_cache);
    submit_choices(choices, 3, 2 * KV_PAGE_TOKENS + 8, 4);
    world_step(16); /* the prompt takes three steps: meanwhile two wait, and hold nothing */
    CU_ASSERT_EQUAL(world.sched.started_count, 1);
    CU_ASSERT_EQUAL(pools_used(POOL_KV_PAGE), 1 + 3);
    world_step(16);
    world_step(16);
    world_step(100);
    CU_ASSERT_EQUAL(world.sched.started_count, 3);
    CU_ASSERT_EQUAL(pools_used(POOL_KV_PAGE), 1 + 2 + 3); /* each its own last page */
    for (int i = 1; i < 3; i++) {
        CU_ASSERT_EQUAL(choices[i]->cached_tokens, choices[i]->prompt_tokens - 1);
    }
    CU_ASSERT_EQUAL(world.sched.prompt_tokens, 40);
    finish_all();
}

static void choices_hold_one_prompt_together(void)
{
    check_choices(true);
}

static void also_without_a_prefix_cache(void)
{
    check_choices(false);
}

static void others_pass_choices_that_wait_for_a_prompt(void)
{
    struct request *choices[2];
    world_open(true);
    submit_choices(choices, 2, 40, 4);
    struct request *other = world_request(500, 8, 60);
    sched_submit(&world.sched, other);
    world_step(8);
    CU_ASSERT(world_state(choices[1]) == SLOT_FREE && world_state(other) != SLOT_FREE);
    for (int i = 0; i < 8; i++) {
        world_step(8);
    }
    CU_ASSERT(world_state(choices[1]) != SLOT_FREE);
    finish_all();
}

static void when_the_one_who_computes_leaves_the_next_one_does(void)
{
    struct request *choices[3];
    world_open(false);
    submit_choices(choices, 3, 40, 4);
    world_step(8);
    atomic_store(&choices[0]->is_cancelled, true);
    world_step(8);
    CU_ASSERT_EQUAL(world_state(choices[1]), SLOT_PREFILL);
    CU_ASSERT_EQUAL(world_state(choices[2]), SLOT_FREE);
    finish_all();
    CU_ASSERT_EQUAL(pools_used(POOL_KV_PAGE), 1);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_prompt_starts_with_all_its_pages_or_waits),
        CASE(two_answers_that_may_fill_the_cache_never_lock_up),
        CASE(nothing_starts_while_one_is_paused),
        CASE(an_exact_repeat_computes_one_token),
        CASE(the_next_turn_reuses_the_answer_too),
        CASE(a_beginning_is_shared_while_it_is_in_use),
        CASE(a_refused_page_or_list_delays_and_loses_nothing),
        CASE(choices_hold_one_prompt_together),
        CASE(also_without_a_prefix_cache),
        CASE(others_pass_choices_that_wait_for_a_prompt),
        CASE(when_the_one_who_computes_leaves_the_next_one_does),
        {NULL, NULL},
    };
    world_pools();
    return harness_run(argc, argv, "engine/sched_start", cases, world_is_home);
}
