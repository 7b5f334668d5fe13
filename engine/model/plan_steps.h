/* plan_steps: checks an architecture's step tables on symbols, and lets buffers that are never alive at once share
 * memory. */
#ifndef MODEL_PLAN_STEPS_H
#define MODEL_PLAN_STEPS_H

#include "engine/model/model.h"

#include <stdint.h>

/* Where each buffer lies. ACT and F32 buffers of the text and of the tower start at 0 of their own memory. */
struct step_plan {
    uint64_t offset[BUFFER_COUNT];
    uint64_t text_bytes;     /* with sharing */
    uint64_t tile_bytes;     /* the tower's tile buffers, with sharing */
    uint64_t state_bytes;    /* the tower's STATE buffers, without: they lie behind the tile buffers */
    uint64_t unshared_bytes; /* all ACT and F32 buffers side by side: for comparison */
};

/* A mistake in a table. */
struct step_fault {
    const char *reason; /* NULL: none */
    const struct step_row *row;
};

/* Checks every row by the op's rule on symbols: a linear's input must be as wide as the weight's `in` by name, not by
 * value; rows agree; nothing is read that was not written before. */
struct step_fault plan_steps_check(const struct arch *arch);

/* Lays the buffers out for these dimensions (those of the flags included). The tables passed the check. */
void plan_steps_place(const struct arch *arch, const uint32_t *dims, enum kernel_type act, struct step_plan *plan);

/* The table's row of a buffer; NULL if the architecture has none. */
const struct buffer_row *plan_steps_buffer(const struct arch *arch, enum buffer buffer);

/* The buffer that holds the bytes: itself, or what it is a view of. */
enum buffer plan_steps_holder(const struct arch *arch, enum buffer buffer);

#endif
