/* registry: the architectures that were compiled in. The Makefile writes model_list.h from the file names in arch/:
 * ARCH(stem) for each, which is the file's arch_<stem>. Adding a model needs no edit here.
 */
#include "engine/model/registry.h"

#include "engine/model/model.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ARCH(stem) extern const struct arch arch_##stem;
#include "model_list.h"
#undef ARCH

static const struct arch *const archs[] = {
#define ARCH(stem) &arch_##stem,
#include "model_list.h"
#undef ARCH
};

const struct arch *registry_find(const char *name, size_t name_bytes)
{
    assert(name != NULL || name_bytes == 0);
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        if (strlen(archs[i]->hf_name) == name_bytes && memcmp(archs[i]->hf_name, name, name_bytes) == 0) {
            return archs[i];
        }
    }
    return NULL;
}

void registry_list(char *text, size_t text_bytes)
{
    size_t used = 0;

    assert(text_bytes > 0);
    text[0] = '\0';
    for (size_t i = 0; i < sizeof archs / sizeof archs[0] && used < text_bytes; i++) {
        int length = snprintf(text + used, text_bytes - used, "%s%s", i > 0 ? ", " : "", archs[i]->hf_name);
        used += length > 0 ? (size_t)length : 0;
    }
}
