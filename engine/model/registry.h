/* registry: the architectures that were compiled in: one file of engine/model/arch/ each. */
#ifndef MODEL_REGISTRY_H
#define MODEL_REGISTRY_H

#include <stddef.h>

struct arch;

/* The architecture that config.json calls `name` (not NUL-ended), or NULL. */
const struct arch *registry_find(const char *name, size_t name_bytes);

/* All names, separated by ", "; cut to fit. */
void registry_list(char *text, size_t text_bytes);

#endif
