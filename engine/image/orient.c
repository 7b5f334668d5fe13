/* orient: applies an EXIF orientation to packed RGB.
 *
 * Each orientation is a walk over the stored pixels: where the upright picture's first pixel lies, and the strides from
 * one upright pixel to the next along a row and down a column.
 */
#include "engine/image/orient.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { PIXEL_BYTES = 3, TILE_EDGE = 32 };

/* Whether an upright step to the right (or down) goes against the stored axis, and whether the axes are exchanged:
 * upright(x, y) = stored(x', y') with the exchange applied last. Index 0 is not used. */
static const struct {
    bool is_turned, flips_x, flips_y;
} WALKS[9] = {
    {false, false, false}, {false, false, false}, {false, true, false}, {false, true, true}, {false, false, true},
    {true, false, false},  {true, true, false},   {true, true, true},   {true, false, true},
};

void orient_write_upright(const unsigned char *stored, uint32_t stored_width, uint32_t stored_height,
                          unsigned orientation, unsigned char *upright)
{
    assert(orientation >= 1 && orientation <= 8);
    assert(stored_width > 0 && stored_height > 0);
    bool is_turned = WALKS[orientation].is_turned;
    uint32_t width = is_turned ? stored_height : stored_width, height = is_turned ? stored_width : stored_height;
    ptrdiff_t row_bytes = (ptrdiff_t)stored_width * PIXEL_BYTES;
    ptrdiff_t step_x = is_turned ? row_bytes : PIXEL_BYTES, step_y = is_turned ? PIXEL_BYTES : row_bytes;

    if (WALKS[orientation].flips_x) {
        stored += step_x * (ptrdiff_t)(width - 1);
        step_x = -step_x;
    }
    if (WALKS[orientation].flips_y) {
        stored += step_y * (ptrdiff_t)(height - 1);
        step_y = -step_y;
    }
    /* In tiles, so that a turned walk keeps the cache lines that it touches. */
    for (uint32_t tile_y = 0; tile_y < height; tile_y += TILE_EDGE) {
        uint32_t y_end = height - tile_y < TILE_EDGE ? height : tile_y + TILE_EDGE;
        for (uint32_t tile_x = 0; tile_x < width; tile_x += TILE_EDGE) {
            uint32_t x_end = width - tile_x < TILE_EDGE ? width : tile_x + TILE_EDGE;
            for (uint32_t y = tile_y; y < y_end; y++) {
                const unsigned char *from = stored + step_y * (ptrdiff_t)y + step_x * (ptrdiff_t)tile_x;
                unsigned char *to = upright + ((size_t)y * width + tile_x) * PIXEL_BYTES;
                for (uint32_t x = tile_x; x < x_end; x++, from += step_x, to += PIXEL_BYTES) {
                    memcpy(to, from, PIXEL_BYTES);
                }
            }
        }
    }
}
