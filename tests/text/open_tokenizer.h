/* open_tokenizer: opens a folder's tokenizer for a test. */
#ifndef TESTS_TEXT_OPEN_TOKENIZER_H
#define TESTS_TEXT_OPEN_TOKENIZER_H

#include "engine/text/tokenizer.h"
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

enum {
    TEST_FILE_BYTES_MAX = 8 * 1024 * 1024,
    TEST_TEXT_BYTES_MAX = 2 * 1024 * 1024,
    TEST_IDS_MAX = 1024 * 1024,
};

/* Room that every test of text needs once. */
struct text_room {
    struct tokenizer tokenizer;
    char *text;
    int32_t *ids;
    void *scratch;
    size_t scratch_bytes;
    char detail[ERROR_DETAIL_BYTES_MAX];
};

static inline struct tokenizer_file read_tokenizer_file(const char *folder, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    char *bytes = harness_memory(TEST_FILE_BYTES_MAX);
    long length = harness_read(path, bytes, TEST_FILE_BYTES_MAX);
    return length < 0 ? (struct tokenizer_file){NULL, 0} : (struct tokenizer_file){bytes, (size_t)length};
}

static inline bool open_files(struct text_room *room, uint32_t vocab_size, const struct tokenizer_files *files)
{
    size_t bytes = tokenizer_bytes(vocab_size);
    room->detail[0] = '\0';
    bool is_open = tokenizer_open(&room->tokenizer, vocab_size, files, harness_memory(bytes), bytes, room->detail);
    if (room->scratch == NULL) {
        room->text = harness_memory(TEST_TEXT_BYTES_MAX);
        room->ids = harness_memory(TEST_IDS_MAX * sizeof(int32_t));
        room->scratch_bytes = tokenizer_scratch_bytes(TEST_TEXT_BYTES_MAX);
        room->scratch = harness_memory(room->scratch_bytes);
    }
    return is_open;
}

/* Opens tokenizer.json, or the parts of it that lie beside, and the added tokens of `config_folder` if it is given. */
static inline bool open_folder(struct text_room *room, uint32_t vocab_size, const char *folder, bool from_parts,
                               const char *config_folder)
{
    struct tokenizer_files files = {.tokenizer_json = {NULL, 0}};
    if (from_parts) {
        files.vocab_json = read_tokenizer_file(folder, "vocab.json");
        files.merges_txt = read_tokenizer_file(folder, "merges.txt");
    } else {
        files.tokenizer_json = read_tokenizer_file(folder, "tokenizer.json");
    }
    if (config_folder != NULL) {
        files.tokenizer_config_json = read_tokenizer_file(config_folder, "tokenizer_config.json");
        files.added_tokens_json = read_tokenizer_file(config_folder, "added_tokens.json");
    }
    return open_files(room, vocab_size, &files);
}

#endif
