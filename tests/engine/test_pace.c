/* Properties of engine/pace.c: a stream's gap stays within the budget or twice its own step; everybody gets on. */
#include "engine/pace.h"
#include "tests/harness.h"

static struct pace pace;

static void learn(uint64_t budget_us, uint64_t decode_us, uint64_t row_us, uint64_t unit_us)
{
    pace_open(&pace, budget_us);
    for (int i = 0; i < 50; i++) {
        pace_count_step(&pace, 4, 0, decode_us);
        pace_count_step(&pace, 4, 100, decode_us + 100 * row_us);
        pace_count_unit(&pace, 2, unit_us);
    }
}

/* Time from one token of a stream to the next in a round that does all it may. */
static uint64_t gap_us(uint64_t decode_us, uint64_t row_us, uint64_t unit_us, bool has_picture)
{
    uint64_t spent_us = decode_us + pace_rows(&pace, true, has_picture, 100000) * row_us;
    while (has_picture && pace_has_room(&pace, 2, true, true, spent_us)) {
        spent_us += unit_us;
    }
    return spent_us;
}

static void the_gap_is_within_the_budget_or_two_steps(void)
{
    for (uint64_t decode_us = 500; decode_us < 400000; decode_us *= 3) {
        for (uint64_t row_us = 10; row_us <= 2000; row_us *= 5) {
            learn(50000, decode_us, row_us, 7000);
            uint64_t most_us = 2 * decode_us > 50000 ? 2 * decode_us : 50000;
            bool is_least = pace_rows(&pace, true, true, 100000) == 16; /* the least a prompt always gets */
            for (int has_picture = 0; has_picture < 2; has_picture++) {
                uint64_t gap = gap_us(decode_us, row_us, 7000, has_picture == 1);
                CU_ASSERT(gap <= most_us + most_us / 50 || is_least);
                CU_ASSERT(gap > decode_us);
            }
        }
    }
}

static void most_of_the_room_is_used(void)
{
    learn(50000, 150000, 1000, 10000);
    CU_ASSERT(gap_us(150000, 1000, 10000, true) > 240000);
    learn(50000, 2000, 100, 3000);
    CU_ASSERT(gap_us(2000, 100, 3000, true) > 34000);
}

static void without_streams_prompts_take_whole_chunks(void)
{
    learn(50000, 2000, 100000, 3000);
    CU_ASSERT_EQUAL(pace_rows(&pace, false, true, 512), 512);
    CU_ASSERT(pace_has_room(&pace, 2, false, true, 150000)); /* and pictures some budgets */
    CU_ASSERT_FALSE(pace_has_room(&pace, 2, false, true, 300000));
    CU_ASSERT(pace_has_room(&pace, 2, false, false, 300000));
    CU_ASSERT_FALSE(pace_has_room(&pace, 2, false, false, 3000000));
}

static void a_prompt_gets_on_before_anything_is_known(void)
{
    pace_open(&pace, 1);
    CU_ASSERT_EQUAL(pace_rows(&pace, true, false, 512), 16);
    CU_ASSERT_EQUAL(pace_rows(&pace, true, false, 5), 5);
    pace_count_step(&pace, 1, 16, 5);
    CU_ASSERT(pace_rows(&pace, true, true, 512) >= 16);
}

static void rows_grow_with_what_was_measured(void)
{
    pace_open(&pace, 50000);
    pace_count_step(&pace, 1, 0, 1000);
    pace_count_step(&pace, 1, 20, 900); /* noise: twenty rows for nothing */
    CU_ASSERT_EQUAL(pace_rows(&pace, true, false, 100000), 40);
    pace_count_step(&pace, 1, 40, 1000 + 40 * 100);
    CU_ASSERT_EQUAL(pace_rows(&pace, true, false, 100000), 80);
    pace_count_step(&pace, 1, 3, 2000); /* the end of a prompt */
    CU_ASSERT_EQUAL(pace_rows(&pace, true, false, 100000), 16);
    CU_ASSERT_EQUAL(pace_rows(&pace, false, false, 512), 512);
}

static void the_worst_counts_at_once(void)
{
    learn(50000, 1000, 100, 2000);
    CU_ASSERT(pace_has_room(&pace, 2, true, true, 30000));
    pace_count_unit(&pace, 2, 20000);
    CU_ASSERT_FALSE(pace_has_room(&pace, 2, true, true, 30000));
    for (int i = 0; i < 200; i++) {
        pace_count_unit(&pace, 2, 2000);
    }
    CU_ASSERT(pace_has_room(&pace, 2, true, true, 30000)); /* and is forgotten */
    pace_count_unit(&pace, 3, 30000);
    CU_ASSERT(pace_has_room(&pace, 2, true, true, 30000)); /* another kind changes nothing */
    CU_ASSERT_FALSE(pace_has_room(&pace, 3, true, true, 30000));
    CU_ASSERT_FALSE(pace_has_room(&pace, 4, true, true, 30000)); /* a kind never seen may be the longest */
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_gap_is_within_the_budget_or_two_steps),
        CASE(most_of_the_room_is_used),
        CASE(without_streams_prompts_take_whole_chunks),
        CASE(a_prompt_gets_on_before_anything_is_known),
        CASE(rows_grow_with_what_was_measured),
        CASE(the_worst_counts_at_once),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/pace", cases, NULL);
}
