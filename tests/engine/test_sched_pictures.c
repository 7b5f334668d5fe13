/* Properties of engine/sched_pictures.c: two features a request, two PIXELS slots, one worker, in the order of age. */
#include "tests/engine/sched_world.h"

/* The worker and the tower, at once. */
static bool encode_next(enum err err)
{
    uint32_t feature;
    slab_handle pixels;
    if (!sched_next_job(&world.sched)) {
        return false;
    }
    sched_job_done(&world.sched, err, "damaged");
    if (err == ERR_OK) {
        CU_ASSERT_FATAL(sched_next_encode(&world.sched, &feature, &pixels));
        sched_encoded(&world.sched);
    }
    sched_check(&world.sched);
    return true;
}

static void finish_all(void)
{
    for (int i = 0; i < 400 && sched_load(&world.sched) > 0; i++) {
        (void)encode_next(ERR_OK);
        world_step(100);
    }
    while (world_take_ended()) {
    }
    CU_ASSERT_EQUAL(sched_load(&world.sched), 0);
}

static void a_chunk_ends_before_the_next_picture_that_is_not_encoded(void)
{
    world_open(true);
    struct request *request = world_request(100, 60, 2);
    world_picture(request, 1, 10, 20);
    world_picture(request, 2, 40, 10);
    sched_submit(&world.sched, request);
    world_step(100);
    CU_ASSERT(world.share_count == 1 && world.shares[0].count == 10);
    world_step(100);
    CU_ASSERT_EQUAL(world_state(request), SLOT_WAIT_PICTURE);
    CU_ASSERT(encode_next(ERR_OK));
    CU_ASSERT_FALSE(atomic_load(&request->is_body_free));
    world_step(100);
    CU_ASSERT(world.shares[0].first == 10 && world.shares[0].count == 30);
    CU_ASSERT(encode_next(ERR_OK));
    CU_ASSERT(atomic_load(&request->is_body_free));
    world_step(100);
    CU_ASSERT(world.shares[0].first == 40 && world.shares[0].wants_logits);
    finish_all();
}

static void many_pictures_hold_the_memory_of_two(void)
{
    world_open(true);
    struct request *request = world_request(100, 160, 1);
    for (uint32_t i = 0; i < 12; i++) {
        world_picture(request, (unsigned char)i, 5 + i * 12, 10);
    }
    sched_submit(&world.sched, request);
    for (int i = 0; i < 100 && sched_load(&world.sched) > 0; i++) {
        (void)encode_next(ERR_OK);
        CU_ASSERT(pools_used(POOL_FEATURE) <= 2);
        world_step(100);
    }
    CU_ASSERT(pools_high_water(POOL_PIXELS) <= 2);
    CU_ASSERT_EQUAL(world.sched.mm.hit_count, 0);
    finish_all();
}

static void the_eldest_request_is_served_first(void)
{
    world_open(true);
    struct request *first = world_request(100, 50, 1), *second = world_request(300, 50, 1);
    world_picture(first, 1, 10, 10);
    world_picture(first, 2, 30, 10);
    world_picture(second, 3, 10, 10);
    sched_submit(&world.sched, first);
    sched_submit(&world.sched, second);
    world_step(100);
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT(sched_next_job(&world.sched));
        CU_ASSERT_FALSE(sched_next_job(&world.sched)); /* one worker */
        CU_ASSERT_PTR_EQUAL(world.sched.job.request, i < 2 ? first : second);
        CU_ASSERT_EQUAL(world.sched.job.picture, i < 2 ? i : 0);
        sched_job_done(&world.sched, ERR_OK, NULL);
        if (i == 0) {
            continue; /* both PIXELS slots are full after the second */
        }
        uint32_t feature;
        slab_handle pixels;
        CU_ASSERT(i == 2 || !sched_next_job(&world.sched));
        CU_ASSERT(sched_next_encode(&world.sched, &feature, &pixels));
        CU_ASSERT_FALSE(sched_next_encode(&world.sched, &feature, &pixels));
        sched_encoded(&world.sched);
    }
    uint32_t feature;
    slab_handle pixels;
    CU_ASSERT(sched_next_encode(&world.sched, &feature, &pixels));
    sched_encoded(&world.sched);
    finish_all();
}

static void a_damaged_picture_refuses_all_who_wait_for_it(void)
{
    world_open(true);
    struct request *first = world_request(100, 40, 1), *second = world_request(300, 60, 1),
                   *third = world_request(500, 40, 1);
    world_picture(first, 1, 10, 10);
    world_picture(second, 1, 10, 10);
    world_picture(second, 7, 30, 10);
    world_picture(third, 2, 10, 10);
    second->pictures[0].part_index = 5;
    sched_submit(&world.sched, first);
    sched_submit(&world.sched, second);
    sched_submit(&world.sched, third);
    world_step(100);
    CU_ASSERT(sched_next_job(&world.sched));
    sched_job_done(&world.sched, ERR_OK, NULL); /* the first's, before the second asks for it too */
    uint32_t feature;
    slab_handle pixels;
    CU_ASSERT(sched_next_job(&world.sched)); /* the second's other one: it holds the first's by now */
    CU_ASSERT_PTR_EQUAL(world.sched.job.request, second);
    CU_ASSERT(sched_next_encode(&world.sched, &feature, &pixels));
    sched_encoded(&world.sched);
    sched_job_done(&world.sched, ERR_BAD_IMAGE, "damaged");
    CU_ASSERT_EQUAL(second->err, ERR_BAD_IMAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(second->err_detail, "messages[0].content[1].image_url.url: damaged"));
    CU_ASSERT(first->err == ERR_OK && third->err == ERR_OK);
    sched_check(&world.sched);
    finish_all();
}

static void a_leaver_keeps_its_slot_until_the_worker_lets_go_of_its_body(void)
{
    world_open(true);
    struct request *request = world_request(100, 40, 1);
    world_picture(request, 1, 10, 10);
    sched_submit(&world.sched, request);
    world_step(100);
    CU_ASSERT(sched_next_job(&world.sched));
    atomic_store(&request->is_cancelled, true);
    sched_sweep(&world.sched);
    CU_ASSERT_EQUAL(world_state(request), SLOT_LEAVING);
    CU_ASSERT(atomic_load(&world.sched.job.is_cancelled));
    CU_ASSERT_PTR_NULL(sched_take_ended(&world.sched));
    CU_ASSERT_EQUAL(kv_available(&world.sched.kv), WORLD_PAGES - 1); /* its pages are home already */
    sched_job_done(&world.sched, ERR_CLIENT_GONE, NULL);
    CU_ASSERT(world_take_ended());
    sched_check(&world.sched);
}

static void a_picture_that_nobody_wants_any_more_is_dropped(void)
{
    uint32_t feature;
    slab_handle pixels;
    for (int encoding = 0; encoding < 2; encoding++) {
        world_open(true);
        struct request *request = world_request(100, 40, 1);
        world_picture(request, 1, 10, 10);
        sched_submit(&world.sched, request);
        world_step(100);
        CU_ASSERT(sched_next_job(&world.sched));
        sched_job_done(&world.sched, ERR_OK, NULL);
        if (encoding == 1) {
            CU_ASSERT(sched_next_encode(&world.sched, &feature, &pixels));
        }
        atomic_store(&request->is_cancelled, true);
        sched_sweep(&world.sched);
        CU_ASSERT_EQUAL(sched_encode_is_unwanted(&world.sched), encoding == 1);
        if (encoding == 1) {
            sched_drop_encode(&world.sched);
        }
        CU_ASSERT(world_take_ended());
        CU_ASSERT_EQUAL(world_is_home(), 0);
    }
    world_open(true);
}

static void a_cached_beginning_needs_no_picture(void)
{
    world_open(true);
    struct request *first = world_request(100, 60, 1), *second = world_request(100, 60, 1);
    world_picture(first, 1, 10, 20);
    world_picture(second, 1, 10, 20);
    sched_submit(&world.sched, first);
    finish_all();
    sched_submit(&world.sched, second);
    world_step(100);
    CU_ASSERT_EQUAL(second->cached_tokens, 59);
    CU_ASSERT(atomic_load(&second->is_body_free));
    CU_ASSERT_EQUAL(world.sched.mm.hit_count, 0);
    finish_all();
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_chunk_ends_before_the_next_picture_that_is_not_encoded),
        CASE(many_pictures_hold_the_memory_of_two),
        CASE(the_eldest_request_is_served_first),
        CASE(a_damaged_picture_refuses_all_who_wait_for_it),
        CASE(a_leaver_keeps_its_slot_until_the_worker_lets_go_of_its_body),
        CASE(a_picture_that_nobody_wants_any_more_is_dropped),
        CASE(a_cached_beginning_needs_no_picture),
        {NULL, NULL},
    };
    world_pools();
    return harness_run(argc, argv, "engine/sched_pictures", cases, world_is_home);
}
