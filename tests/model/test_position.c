/* position: a walk over the ids gives the same as the closed form, whole and in pieces. */
#include "engine/model/position.h"

#include "tests/harness.h"

enum { TOKENS_COUNT = 600 };

static const struct position_span three[] = {{5, 3, 7}, {26, 1, 1}, {40, 20, 4}};

/* The walk of spec §5. */
static void walk(const struct position_span *spans, uint32_t span_count, int32_t (*out)[3])
{
    int32_t counter = 0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < TOKENS_COUNT;) {
        if (next < span_count && spans[next].first == i) {
            const struct position_span *span = &spans[next++];
            for (uint32_t y = 0; y < span->height; y++) {
                for (uint32_t x = 0; x < span->width; x++, i++) {
                    out[i][0] = counter;
                    out[i][1] = counter + (int32_t)y;
                    out[i][2] = counter + (int32_t)x;
                }
            }
            counter += (int32_t)(span->height > span->width ? span->height : span->width);
            continue;
        }
        out[i][0] = out[i][1] = out[i][2] = counter++;
        i++;
    }
}

static void positions_equal_the_walk(void)
{
    static int32_t expected[TOKENS_COUNT][3], got[TOKENS_COUNT][3];
    walk(three, 3, expected);
    position_fill(three, 3, 0, TOKENS_COUNT, got);
    for (uint32_t i = 0; i < TOKENS_COUNT; i++) {
        CU_ASSERT(got[i][0] == expected[i][0] && got[i][1] == expected[i][1] && got[i][2] == expected[i][2]);
    }
}

static void pieces_equal_the_whole(void)
{
    static int32_t whole[TOKENS_COUNT][3], piece[TOKENS_COUNT][3];
    position_fill(three, 3, 0, TOKENS_COUNT, whole);
    for (uint32_t first = 0; first < TOKENS_COUNT; first += 7) {
        uint32_t count = first + 13 < TOKENS_COUNT ? 13 : TOKENS_COUNT - first;
        position_fill(three, 3, first, count, piece);
        for (uint32_t i = 0; i < count; i++) {
            CU_ASSERT(piece[i][0] == whole[first + i][0] && piece[i][1] == whole[first + i][1]);
            CU_ASSERT_EQUAL(piece[i][2], whole[first + i][2]);
        }
    }
}

static void delta_is_what_the_last_token_adds(void)
{
    int32_t last[1][3];
    position_fill(three, 3, 500, 1, last);
    CU_ASSERT_EQUAL(last[0][0], 500 + position_delta(three, 3));
    CU_ASSERT_EQUAL(position_delta(three, 3), (7 - 21) + 0 + (20 - 80));
    CU_ASSERT_EQUAL(position_delta(NULL, 0), 0);
}

static void text_alone_counts(void)
{
    int32_t got[4][3];
    position_fill(NULL, 0, 100, 4, got);
    for (int32_t i = 0; i < 4; i++) {
        CU_ASSERT(got[i][0] == 100 + i && got[i][1] == 100 + i && got[i][2] == 100 + i);
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(positions_equal_the_walk),
        CASE(pieces_equal_the_whole),
        CASE(delta_is_what_the_last_token_adds),
        CASE(text_alone_counts),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "position", cases, NULL);
}
