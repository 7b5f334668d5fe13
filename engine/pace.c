/* pace: how much prompt and picture work a round may do.
 *
 * With d the time of a step of answers alone and b the budget, the rest of a round may take max(d, b - d): the gap is
 * then at most max(2 d, b).
 */
#include "engine/pace.h"

#include <assert.h>

enum {
    ROWS_AT_LEAST = 16,      /* of a prompt in a step, however slow: it must get on; also the least that is measured */
    BUDGETS_FOR_PICTURE = 4, /* that a picture gets while prompts, but no streams, wait */
    ROUND_US = 500000,       /* a round ends after this even if there is nothing but a picture: gauges, the watchdog */
};

static uint64_t mean_of(uint64_t mean, uint64_t sample)
{
    return mean == 0 ? sample + 1 : (3 * mean + sample + 3) / 4;
}

void pace_open(struct pace *pace, uint64_t budget_us)
{
    assert(budget_us > 0);
    *pace = (struct pace){.budget_us = budget_us};
}

void pace_count_step(struct pace *pace, uint32_t answer_rows, uint32_t prompt_rows, uint64_t took_us)
{
    assert(answer_rows + prompt_rows > 0);
    if (prompt_rows == 0) {
        pace->decode_us = mean_of(pace->decode_us, took_us);
    } else if (prompt_rows >= ROWS_AT_LEAST) {
        uint64_t answers_us = answer_rows > 0 ? pace->decode_us : 0;
        uint64_t prompts_us = took_us > answers_us ? took_us - answers_us : 0;
        pace->row_us = mean_of(pace->row_us, prompts_us / prompt_rows);
    }
}

void pace_count_unit(struct pace *pace, uint64_t took_us)
{
    pace->unit_us = mean_of(pace->unit_us, took_us);
    assert(pace->unit_us > 0);
}

/* What a round with streams may do besides. */
static uint64_t extra_us(const struct pace *pace)
{
    uint64_t left_us = pace->budget_us > pace->decode_us ? pace->budget_us - pace->decode_us : 0;

    return left_us > pace->decode_us ? left_us : pace->decode_us;
}

uint32_t pace_rows(const struct pace *pace, bool has_stream, bool has_picture, uint32_t rows_max)
{
    if (!has_stream) {
        return rows_max;
    }
    uint64_t room_us = has_picture ? extra_us(pace) / 2 : extra_us(pace);
    uint64_t rows = pace->row_us == 0 ? ROWS_AT_LEAST : room_us / pace->row_us;
    rows = rows < ROWS_AT_LEAST ? ROWS_AT_LEAST : rows;
    return rows < rows_max ? (uint32_t)rows : rows_max;
}

bool pace_has_room(const struct pace *pace, bool has_stream, bool has_text, uint64_t spent_us)
{
    uint64_t end_us = has_stream ? pace->decode_us + extra_us(pace)
                      : has_text ? BUDGETS_FOR_PICTURE * pace->budget_us
                                 : ROUND_US;

    return spent_us + pace->unit_us <= end_us;
}
