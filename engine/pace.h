/* pace: how much prompt and picture work a round may do, so that running streams keep their pace. Knows no clock.
 *
 * A stream's gap between two tokens is the time of its own step, and what else the round does. The rule: the gap stays
 * within --step-budget-ms or twice the time of a step without other work, whichever is longer.
 */
#ifndef ENGINE_PACE_H
#define ENGINE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { PACE_KINDS = 8 }; /* of units of the vision tower */

/* What was measured; 0: nothing yet. */
struct pace {
    uint64_t budget_us; /* --step-budget-ms */
    uint64_t decode_us; /* mean of steps of answer rows alone */
    uint64_t row_us;    /* that a prompt row adds to a step, at worst of late */
    uint32_t last_rows; /* prompt rows of the last step that had any */

    uint64_t unit_us[PACE_KINDS]; /* of a unit of the vision tower, at worst of late; each kind for itself */
};

void pace_open(struct pace *pace, uint64_t budget_us);

/* What a step took. */
void pace_count_step(struct pace *pace, uint32_t answer_rows, uint32_t prompt_rows, uint64_t took_us);
void pace_count_unit(struct pace *pace, uint32_t kind, uint64_t took_us);

/* Prompt rows for the next step, at most rows_max, and beside streams at most twice those of the step before;
 * `has_picture`: one is being encoded too, so the room is shared. */
uint32_t pace_rows(const struct pace *pace, bool has_stream, bool has_picture, uint32_t rows_max);

/* True if another unit, of this kind, fits into a round that has lasted spent_us; `has_text`: the round computed a
 * step. */
bool pace_has_room(const struct pace *pace, uint32_t kind, bool has_stream, bool has_text, uint64_t spent_us);

#endif
