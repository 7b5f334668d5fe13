/* Properties of engine/sched.c: its table of states, who gets rows, who ends how. Crowds: tests/sim. */
#include "engine/sched.h"
#include "engine/sched_inside.h"
#include "tests/engine/sched_world.h"

static enum sched_state tried_state;
static enum sched_event tried_event;

static void try_transition(void)
{
    struct sched_slot *slot = &world.sched.slots[0];
    slot->state = tried_state;
    world.sched.paused_count = tried_state == SLOT_PAUSED;
    slot_event(&world.sched, slot, tried_event);
}

static void every_event_in_every_state_is_allowed_or_caught(void)
{
    uint32_t allowed = 0, caught = 0;
    world_open(true);
    for (int state = SLOT_FREE; state < SLOT_STATES; state++) {
        for (int event = 0; event < SCHED_EVENTS; event++) {
            tried_state = (enum sched_state)state;
            tried_event = (enum sched_event)event;
            if (harness_aborts(try_transition)) {
                caught++;
            } else {
                allowed++;
            }
        }
    }
    CU_ASSERT_EQUAL(allowed, 15); /* a change of the table shows here */
    CU_ASSERT_EQUAL(allowed + caught, (SLOT_STATES - SLOT_FREE) * SCHED_EVENTS);
}

static void a_request_is_prefilled_decoded_and_ended(void)
{
    world_open(true);
    struct request *request = world_request(100, 40, 3);
    sched_submit(&world.sched, request);
    world_step(16);
    CU_ASSERT_EQUAL(world_state(request), SLOT_PREFILL);
    CU_ASSERT(world.share_count == 1 && world.shares[0].first == 0 && world.shares[0].count == 16);
    world_step(16);
    world_step(16);
    CU_ASSERT_EQUAL(world_state(request), SLOT_DECODE);
    CU_ASSERT(world.shares[0].count == 8 && world.shares[0].wants_logits);
    world_step(16);
    CU_ASSERT(world.shares[0].first == 40 && world.shares[0].count == 1);
    world_step(16);
    CU_ASSERT_EQUAL(world_state(request), SLOT_FREE);
    CU_ASSERT(world_take_ended());
    CU_ASSERT_FALSE(world_take_ended());
}

static void a_step_has_a_row_for_each_stream_and_chunks_for_the_eldest_prompts(void)
{
    world_open(true);
    struct request *first = world_request(100, 5, 9), *second = world_request(200, 30, 2),
                   *third = world_request(300, 30, 2);
    sched_submit(&world.sched, first);
    world_step(16);
    sched_submit(&world.sched, second);
    sched_submit(&world.sched, third);
    world_step(16);
    CU_ASSERT(world.share_count == 2 && world.shares[0].count == 1 && world.shares[1].count == 16);
    world_step(16);
    CU_ASSERT(world.share_count == 3 && world.shares[1].count == 14 && world.shares[2].count == 2);
    for (int i = 0; i < 12; i++) {
        world_step(16);
    }
    CU_ASSERT(world_take_ended() && world_take_ended() && world_take_ended());
}

static void first_come_first_served(void)
{
    struct request *requests[6];
    world_open(true);
    for (int i = 0; i < 6; i++) {
        requests[i] = world_request(100 * i, 10, 2);
        sched_submit(&world.sched, requests[i]);
    }
    world_step(100);
    for (int i = 0; i < 6; i++) {
        CU_ASSERT((world_state(requests[i]) != SLOT_FREE) == (i < WORLD_RUNNING));
    }
    for (int i = 0; i < 4; i++) {
        world_step(100);
    }
    for (int i = 0; i < 6; i++) {
        CU_ASSERT_PTR_EQUAL(sched_take_ended(&world.sched), requests[i]);
        world_put(requests[i]);
    }
}

static void whoever_leaves_is_gone_at_the_next_sweep(void)
{
    struct request *requests[5];
    world_open(true);
    for (int i = 0; i < 5; i++) {
        requests[i] = world_request(100 * i, 20, 50);
        sched_submit(&world.sched, requests[i]);
    }
    world_step(8); /* the first is in the middle of its prompt */
    for (int i = 0; i < 5; i += 2) {
        atomic_store(&requests[i]->is_cancelled, true);
    }
    sched_sweep(&world.sched);
    CU_ASSERT(world_take_ended() && world_take_ended() && world_take_ended());
    CU_ASSERT_EQUAL(sched_load(&world.sched), 2);
    sched_cancel_all(&world.sched);
    CU_ASSERT(world_take_ended() && world_take_ended());
    CU_ASSERT_EQUAL(sched_load(&world.sched), 0);
    sched_check(&world.sched);
}

static void health_runs_beside_a_full_house(void)
{
    world_open(true);
    struct request *large[WORLD_RUNNING], *health = world_request(1, 1, 1);
    for (int i = 0; i < WORLD_RUNNING; i++) {
        large[i] = world_request(1000 * i, 60, 4);
        sched_submit(&world.sched, large[i]);
    }
    world_step(4);
    CU_ASSERT_EQUAL(kv_available(&world.sched.kv), 0);
    CU_ASSERT(sched_submit_health(&world.sched, health));
    CU_ASSERT_FALSE(sched_submit_health(&world.sched, health));
    world_step(4);
    CU_ASSERT_PTR_EQUAL(sched_take_ended(&world.sched), health);
    CU_ASSERT(sched_submit_health(&world.sched, health)); /* and again */
    world_step(4);
    CU_ASSERT_PTR_EQUAL(sched_take_ended(&world.sched), health);
    world_put(health);
    sched_cancel_all(&world.sched);
    while (world_take_ended()) {
    }
}

static void a_cache_that_a_started_request_may_hold_is_not_flushed(void)
{
    world_open(true);
    struct request *request = world_request(1, 33, 2);
    sched_submit(&world.sched, request);
    CU_ASSERT_EQUAL(sched_flush(&world.sched), ERR_OK);
    world_step(100);
    CU_ASSERT_EQUAL(sched_flush(&world.sched), ERR_BUSY);
    world_step(100);
    CU_ASSERT(world_take_ended());
    CU_ASSERT(world.sched.kv.evictable_count > 0);
    CU_ASSERT_EQUAL(sched_flush(&world.sched), ERR_OK);
    CU_ASSERT_EQUAL(world.sched.kv.evictable_count, 0);
}

static void holdings_are_written_down_and_struck_out(void)
{
    world_open(true);
    struct request *request = world_request(100, 40, 30), *waiting = world_request(500, 8, 1);
    CU_ASSERT_STRING_EQUAL(sched_state_name(atomic_load(&waiting->slot_state)), "queued");
    sched_submit(&world.sched, request);
    world_step(100);
    sched_publish_holdings(&world.sched);
    CU_ASSERT_STRING_EQUAL(sched_state_name(atomic_load(&request->slot_state)), "decode");
    CU_ASSERT(atomic_load(&request->held_kv_pages) == 3 && atomic_load(&request->held_page_lists) == 1);
    CU_ASSERT(atomic_load(&request->held_features) == 0 && atomic_load(&request->held_mm_pages) == 0);
    atomic_store(&request->is_cancelled, true);
    world_step(100);
    CU_ASSERT(atomic_load(&request->held_kv_pages) == 0 && atomic_load(&request->held_page_lists) == 0);
    CU_ASSERT(world_take_ended());
    world_put(waiting);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_event_in_every_state_is_allowed_or_caught),
        CASE(a_request_is_prefilled_decoded_and_ended),
        CASE(a_step_has_a_row_for_each_stream_and_chunks_for_the_eldest_prompts),
        CASE(first_come_first_served),
        CASE(whoever_leaves_is_gone_at_the_next_sweep),
        CASE(health_runs_beside_a_full_house),
        CASE(a_cache_that_a_started_request_may_hold_is_not_flushed),
        CASE(holdings_are_written_down_and_struck_out),
        {NULL, NULL},
    };
    world_pools();
    return harness_run(argc, argv, "engine/sched", cases, world_is_home);
}
