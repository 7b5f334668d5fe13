/* window: the vision tower's order of tokens. Windows row by row, inside each its tokens row by row; windows at the
 * right and bottom edge are simply smaller.
 */
#include "engine/model/window.h"

#include <assert.h>
#include <stddef.h>

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t window_count(uint32_t height, uint32_t width, uint32_t side)
{
    assert(side > 0);
    return ((height + side - 1) / side) * ((width + side - 1) / side);
}

void window_order(uint32_t height, uint32_t width, uint32_t side, uint32_t *order, uint32_t *bounds)
{
    uint32_t place = 0, window = 0;

    assert(side > 0 && height > 0 && width > 0);
    assert(order != NULL && bounds != NULL);
    bounds[0] = 0;
    for (uint32_t top = 0; top < height; top += side) {
        for (uint32_t left = 0; left < width; left += side) {
            for (uint32_t y = top; y < smaller(top + side, height); y++) {
                for (uint32_t x = left; x < smaller(left + side, width); x++) {
                    order[place++] = y * width + x;
                }
            }
            bounds[++window] = place;
        }
    }
    assert(place == height * width);
}
