/* plan_print: the memory plan for people and for scripts. */
#ifndef ENGINE_PLAN_PRINT_H
#define ENGINE_PLAN_PRINT_H

#include "engine/json_out.h"
#include "engine/plan_solve.h"

#include <stddef.h>

/* Enough for either form. */
enum { PLAN_TEXT_BYTES = 32 * 1024 };

/* The plan as a table: a row a pool, sums, what is elastic, what fits; if it does not fit, what is missing and the
 * flags that would free most. Returns the length; the text depends on the plan alone, so that it can be a golden file.
 */
size_t plan_print_text(const struct plan *plan, char *text, size_t capacity);

/* Only the last part: what is missing and what would free it; empty if the plan fits. */
size_t plan_print_shortage(const struct plan *plan, char *text, size_t capacity);

/* The same as one JSON object, a value inside `out` (GET /server_info has it as memory_usage). */
void plan_print_json(const struct plan *plan, struct json_out *out);

#endif
