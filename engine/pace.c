/* pace: how much prompt and picture work a round may do.
 *
 * With d the time of a step of answers alone and b the budget, the gap is at most max(2 d, b) if the rest of a round
 * takes max(d, b - d). Three quarters of that are planned: no two rounds take the same time.
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

/* Costs vary (a window, a whole picture; a busy machine), and one round too long is a gap that a reader sees. So the
 * worst counts at once and is forgotten slowly. */
static uint64_t worst_of(uint64_t worst, uint64_t sample)
{
    return sample >= worst ? sample + 1 : (7 * worst + sample + 7) / 8;
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
        return;
    }
    if (prompt_rows >= ROWS_AT_LEAST) {
        uint64_t answers_us = answer_rows > 0 ? pace->decode_us : 0;
        uint64_t prompts_us = took_us > answers_us ? took_us - answers_us : 0;
        pace->row_us = worst_of(pace->row_us, prompts_us / prompt_rows);
    }
    pace->last_rows = prompt_rows;
}

void pace_count_unit(struct pace *pace, uint32_t kind, uint64_t took_us)
{
    assert(kind < PACE_KINDS);
    pace->unit_us[kind] = worst_of(pace->unit_us[kind], took_us);
    assert(pace->unit_us[kind] > 0);
}

/* Of a kind that was never seen: as the longest of the others. */
static uint64_t unit_us(const struct pace *pace, uint32_t kind)
{
    uint64_t longest_us = 0;

    assert(kind < PACE_KINDS);
    for (int i = 0; i < PACE_KINDS; i++) {
        longest_us = pace->unit_us[i] > longest_us ? pace->unit_us[i] : longest_us;
    }
    return pace->unit_us[kind] > 0 ? pace->unit_us[kind] : longest_us;
}

/* What a round with streams may do besides. */
static uint64_t extra_us(const struct pace *pace)
{
    uint64_t left_us = pace->budget_us > pace->decode_us ? pace->budget_us - pace->decode_us : 0;

    return (left_us > pace->decode_us ? left_us : pace->decode_us) * 3 / 4;
}

uint32_t pace_rows(const struct pace *pace, bool has_stream, bool has_picture, uint32_t rows_max)
{
    if (!has_stream) {
        return rows_max;
    }
    uint64_t room_us = has_picture ? extra_us(pace) / 2 : extra_us(pace);
    uint64_t rows = pace->row_us == 0 ? ROWS_AT_LEAST : room_us / pace->row_us;
    /* A few rows tell little about many: so much noise is in the difference of two steps. */
    uint64_t rows_sure = 2 * (uint64_t)pace->last_rows;
    rows = rows < rows_sure ? rows : rows_sure;
    rows = rows < ROWS_AT_LEAST ? ROWS_AT_LEAST : rows;
    return rows < rows_max ? (uint32_t)rows : rows_max;
}

bool pace_has_room(const struct pace *pace, uint32_t kind, bool has_stream, bool has_text, uint64_t spent_us)
{
    uint64_t end_us = has_stream ? pace->decode_us + extra_us(pace)
                      : has_text ? BUDGETS_FOR_PICTURE * pace->budget_us
                                 : ROUND_US;

    return spent_us + unit_us(pace, kind) <= end_us;
}
