/* dims: the numbers behind an architecture's symbols, read from config.json and cross-checked. */
#ifndef MODEL_DIMS_H
#define MODEL_DIMS_H

#include "engine/model/config_text.h"
#include "engine/model/model.h"

/* Evaluates the table in its order into dims[DIM_COUNT] (symbols that it does not name: 0). Refuses to start (code 4),
 * naming file and key: a missing or zero number, one above its symbol's bound, heads that do not divide. Published
 * defaults that are used are logged. */
void dims_read(const struct arch *arch, const struct config_text *config, uint32_t *dims);

/* "HIDDEN", ... for messages. */
const char *dims_name(enum dim dim);

#endif
