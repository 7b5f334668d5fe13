/* position: M-RoPE positions, from the pictures' places alone.
 *
 * A picture of H x W tokens moves the counter by max(H, W) and the index by H * W, so the counter at an index is the
 * index plus the sum of (max(H, W) - H * W) over the pictures before it. No walk over the ids is needed.
 */
#include "engine/model/position.h"

#include <assert.h>
#include <stddef.h>

static int32_t span_shift(const struct position_span *span)
{
    uint32_t longer = span->height > span->width ? span->height : span->width;

    return (int32_t)longer - (int32_t)(span->height * span->width);
}

int32_t position_delta(const struct position_span *spans, uint32_t span_count)
{
    int32_t delta = 0;

    assert(spans != NULL || span_count == 0);
    for (uint32_t i = 0; i < span_count; i++) {
        delta += span_shift(&spans[i]);
    }
    return delta;
}

void position_fill(const struct position_span *spans, uint32_t span_count, uint32_t first, uint32_t count,
                   int32_t (*positions)[3])
{
    uint32_t next = 0; /* the first span that does not end before the token */
    int32_t shift = 0;

    assert(spans != NULL || span_count == 0);
    assert(positions != NULL || count == 0);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = first + i;
        while (next < span_count && index >= spans[next].first + spans[next].height * spans[next].width) {
            shift += span_shift(&spans[next++]);
        }
        int32_t counter = (int32_t)index + shift;
        int32_t y = 0, x = 0;
        if (next < span_count && index >= spans[next].first) {
            uint32_t inside = index - spans[next].first;
            assert(spans[next].width > 0);
            counter -= (int32_t)inside;
            y = (int32_t)(inside / spans[next].width);
            x = (int32_t)(inside % spans[next].width);
        }
        positions[i][0] = counter;
        positions[i][1] = counter + y;
        positions[i][2] = counter + x;
    }
}
