/* Properties of engine/batch.c: rows of all shares in order, each with its token, place, position and page list. */
#include "engine/batch.h"
#include "tests/engine/sched_world.h"

enum { ROWS = 64 };

static struct batch batch;

static void open_batch(void)
{
    batch_open(&batch, ROWS, WORLD_RUNNING + 1, 2, harness_memory((size_t)batch_bytes(ROWS, WORLD_RUNNING + 1)));
}

static void plan(uint32_t rows_max)
{
    sched_admit(&world.sched);
    uint32_t count = sched_plan(&world.sched, rows_max, batch.shares);
    batch_fill(&batch, &world.sched, NULL, count);
}

static void end_all(void)
{
    sched_cancel_all(&world.sched);
    while (world_take_ended()) {
    }
}

static void rows_of_several_requests_share_a_step(void)
{
    world_open(true);
    open_batch();
    struct request *first = world_request(100, 20, 4), *second = world_request(300, 7, 4);
    sched_submit(&world.sched, first);
    sched_submit(&world.sched, second);
    plan(24);
    const struct text_step *step = &batch.step;
    CU_ASSERT(step->row_count == 24 && step->sequence_count == 2 && step->logit_row_count == 1);
    CU_ASSERT(step->logit_rows[0] == 19 && batch.logit_slots[0] == first->engine_slot);
    CU_ASSERT(batch.prefill_rows == 24 && batch.prefill_shares == 2);
    for (uint32_t i = 0; i < 24; i++) {
        const struct text_row *row = &step->rows[i];
        uint32_t index = i < 20 ? i : i - 20;
        CU_ASSERT_EQUAL(row->token, (i < 20 ? 100 : 300) + (int32_t)index);
        CU_ASSERT(row->sequence == (i < 20 ? 0 : 1) && row->index == index && row->feature == NULL);
        for (int axis = 0; axis < 3; axis++) {
            CU_ASSERT_EQUAL(row->position[axis], (int32_t)index);
        }
    }
    for (uint32_t s = 0; s < 2; s++) {
        const struct sched_slot *slot = &world.sched.slots[world.sched.ages[s]];
        CU_ASSERT(step->sequences[s].pages == slot->pages && step->sequences[s].page_count == slot->page_count);
    }
    end_all();
}

static void positions_behind_a_picture_jump_by_its_longer_edge(void)
{
    world_open(true);
    open_batch();
    struct request *request = world_request(100, 40, 4);
    world_picture(request, 1, 5, 12);
    request->pictures[0].grid_h = 4; /* 2 x 6 merged tokens */
    request->pictures[0].grid_w = 12;
    sched_submit(&world.sched, request);
    sched_admit(&world.sched);
    struct sched_slot *slot = &world.sched.slots[request->engine_slot];
    slot->computed = 17; /* as if the picture were in the KV */
    slot->picture = 1;
    plan(64);
    CU_ASSERT_EQUAL(batch.step.row_count, 23);
    CU_ASSERT(batch.step.rows[0].position[0] == 5 + 6 && batch.step.rows[0].position[2] == 5 + 6);
    CU_ASSERT_EQUAL(batch.step.rows[22].position[1], 11 + 22);
    slot->picture = 0; /* it was never really encoded */
    end_all();
}

static void a_stream_has_one_row_and_its_logits(void)
{
    world_open(true);
    open_batch();
    struct request *request = world_request(100, 10, 4);
    sched_submit(&world.sched, request);
    world_step(64);
    plan(64);
    CU_ASSERT(batch.step.row_count == 1 && batch.step.logit_row_count == 1 && batch.prefill_rows == 0);
    CU_ASSERT(batch.step.rows[0].token == 1 && batch.step.rows[0].index == 10);
    end_all();
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(rows_of_several_requests_share_a_step),
        CASE(positions_behind_a_picture_jump_by_its_longer_edge),
        CASE(a_stream_has_one_row_and_its_logits),
        {NULL, NULL},
    };
    world_pools();
    return harness_run(argc, argv, "engine/batch", cases, world_is_home);
}
