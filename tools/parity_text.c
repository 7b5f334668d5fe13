/* parity_text: the tokenizer of a model folder, for the parity tool. One at a time; its memory is mapped anew for each.
 */
#include "tools/parity_text.h"

#include "engine/json.h"
#include "pools/domain.h"
#include "tests/model/model_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 64 * 1024, IDS_MAX = 16 * 1024 };

static struct tokenizer tokenizer;
static char text_room[TEXT_BYTES_MAX];
static int32_t id_room[IDS_MAX];
static void *scratch;

static struct tokenizer_file map_file(const char *folder, const char *name)
{
    char path[512];
    uint64_t bytes = 0;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    char *map = domain_file_map(path, &bytes);
    return (struct tokenizer_file){map, (size_t)bytes};
}

bool parity_open_tokenizer(const char *folder, uint32_t vocab_size)
{
    char detail[ERROR_DETAIL_BYTES_MAX] = "";
    size_t bytes = (tokenizer_bytes(vocab_size) + 63) / 64 * 64;
    struct tokenizer_files files = {
        .tokenizer_json = map_file(folder, "tokenizer.json"),
        .tokenizer_config_json = map_file(folder, "tokenizer_config.json"),
    };
    scratch = scratch != NULL ? scratch : rig_memory((tokenizer_scratch_bytes(TEXT_BYTES_MAX) + 63) / 64 * 64);
    if (!tokenizer_open(&tokenizer, vocab_size, &files, rig_memory(bytes), bytes, detail)) {
        (void)fprintf(stderr, "%s: %s\n", folder, detail);
        return false;
    }
    return true;
}

bool parity_encodes_to(const char *text, size_t bytes, const int32_t *ids, uint32_t count)
{
    size_t got = 0;
    if (bytes > TEXT_BYTES_MAX) {
        return false;
    }
    struct text_range whole = {0, json_unescape(text, bytes, text_room)};
    enum err err = tokenizer_encode(&tokenizer, text_room, whole.end, &whole, 1, id_room, IDS_MAX, scratch,
                                    tokenizer_scratch_bytes(TEXT_BYTES_MAX), &got);
    return err == ERR_OK && got == count && memcmp(id_room, ids, count * sizeof(int32_t)) == 0;
}

size_t parity_decode(const int32_t *ids, uint32_t count, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = 0;
        const char *token = tokenizer_token(&tokenizer, ids[i], &bytes);
        if (!tokenizer_is_special(&tokenizer, ids[i]) && bytes <= out_bytes - used) {
            memcpy(out + used, token, bytes);
            used += bytes;
        }
    }
    return used;
}
