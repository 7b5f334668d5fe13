/* window: the order is a permutation, windows partition it, and each holds the tokens of one square of the grid. */
#include "engine/model/window.h"

#include "tests/harness.h"

#include <string.h>

enum { SIDE_MAX = 13, GRID_MAX = SIDE_MAX * SIDE_MAX };

static uint32_t order[GRID_MAX], bounds[GRID_MAX + 1];

static void check_grid(uint32_t height, uint32_t width, uint32_t side)
{
    uint8_t seen[GRID_MAX] = {0};
    uint32_t windows = window_count(height, width, side), across = (width + side - 1) / side;
    window_order(height, width, side, order, bounds);
    CU_ASSERT_EQUAL(bounds[0], 0);
    CU_ASSERT_EQUAL(bounds[windows], height * width);
    for (uint32_t w = 0; w < windows; w++) {
        CU_ASSERT(bounds[w + 1] > bounds[w] && bounds[w + 1] - bounds[w] <= side * side);
        for (uint32_t i = bounds[w]; i < bounds[w + 1]; i++) {
            uint32_t y = order[i] / width, x = order[i] % width;
            CU_ASSERT_EQUAL(y / side * across + x / side, w);
            CU_ASSERT(i == bounds[w] || order[i] > order[i - 1]); /* row by row inside */
            seen[order[i]]++;
        }
    }
    for (uint32_t i = 0; i < height * width; i++) {
        CU_ASSERT_EQUAL(seen[i], 1);
    }
}

static void every_small_grid_is_partitioned(void)
{
    for (uint32_t side = 1; side <= 5; side++) {
        for (uint32_t height = 1; height <= SIDE_MAX; height++) {
            for (uint32_t width = 1; width <= SIDE_MAX; width++) {
                check_grid(height, width, side);
            }
        }
    }
}

static void one_window_keeps_the_raster(void)
{
    window_order(4, 4, 4, order, bounds);
    CU_ASSERT_EQUAL(window_count(4, 4, 4), 1);
    for (uint32_t i = 0; i < 16; i++) {
        CU_ASSERT_EQUAL(order[i], i);
    }
}

static void an_edge_window_may_hold_one_token(void)
{
    window_order(5, 5, 4, order, bounds);
    CU_ASSERT_EQUAL(window_count(5, 5, 4), 4);
    CU_ASSERT_EQUAL(bounds[3], 24);
    CU_ASSERT_EQUAL(order[24], 24);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_small_grid_is_partitioned),
        CASE(one_window_keeps_the_raster),
        CASE(an_edge_window_may_hold_one_token),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "window", cases, NULL);
}
