/* vocab_load: a checkpoint's tokenizer files into a vocabulary, or the reason why not. Start-up only.
 *
 * What a tokenizer.json says about its pipeline is flattened to rows of path and value and compared with `pipeline`,
 * the one that this program implements: every row found must be known, every required one found.
 */
#include "engine/text/vocab_load.h"

#include "engine/json.h"
#include "engine/text/bpe.h"
#include "engine/text/pretoken.h"
#include "engine/text/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct loader {
    struct vocab *vocab;
    char *detail;
    const char *file;          /* being read, for messages */
    struct json_reader reader; /* over it */
    uint64_t seen_rows;        /* bit i: pipeline[i] */
};

struct pipeline_row {
    const char *path;
    const char *value; /* NULL: anything, it has no bearing on ids */
    bool is_required;
};

/* Rows of one path are alternatives. */
static const struct pipeline_row pipeline[] = {
    {"normalizer.type", "NFC", true},
    {"pre_tokenizer.type", "Sequence", true},
    {"pre_tokenizer.pretokenizers.0.type", "Split", true},
    {"pre_tokenizer.pretokenizers.0.pattern.Regex", PRETOKEN_PATTERN, true},
    {"pre_tokenizer.pretokenizers.0.behavior", "Isolated", true},
    {"pre_tokenizer.pretokenizers.0.invert", "false", true},
    {"pre_tokenizer.pretokenizers.1.type", "ByteLevel", true},
    {"pre_tokenizer.pretokenizers.1.add_prefix_space", "false", true},
    {"pre_tokenizer.pretokenizers.1.use_regex", "false", true},
    {"pre_tokenizer.pretokenizers.1.trim_offsets", NULL, false},
    {"post_processor", "null", false},
    {"post_processor.type", "ByteLevel", false},
    {"post_processor.add_prefix_space", NULL, false},
    {"post_processor.trim_offsets", NULL, false},
    {"post_processor.use_regex", NULL, false},
    {"decoder.type", "ByteLevel", true},
    {"decoder.add_prefix_space", NULL, false},
    {"decoder.trim_offsets", NULL, false},
    {"decoder.use_regex", NULL, false},
    {"model.type", "BPE", false},
    {"model.dropout", "null", false},
    {"model.unk_token", "null", false},
    {"model.continuing_subword_prefix", "null", false},
    {"model.continuing_subword_prefix", "", false},
    {"model.end_of_word_suffix", "null", false},
    {"model.end_of_word_suffix", "", false},
    {"model.fuse_unk", NULL, false},
    {"model.byte_fallback", "false", false},
    {"model.ignore_merges", "false", false},
};

enum {
    PIPELINE_ROWS = sizeof pipeline / sizeof pipeline[0],
    ROW_PATH_BYTES_MAX = 128,
};

_Static_assert(PIPELINE_ROWS <= 64, "seen_rows has a bit for each row");

static bool refuse(struct loader *loader, const char *what, const char *item, size_t item_bytes)
{
    int shown = item_bytes > 160 ? 160 : (int)item_bytes;
    (void)snprintf(loader->detail, ERROR_DETAIL_BYTES_MAX, "%s: %s%s%.*s", loader->file, what, shown > 0 ? ": " : "",
                   shown, item);
    return false;
}

static bool refuse_json(struct loader *loader)
{
    const char *reason = loader->reader.reason == NULL ? "unexpected value" : loader->reader.reason;
    size_t at = loader->reader.reason == NULL ? loader->reader.at : loader->reader.error_at;
    (void)snprintf(loader->detail, ERROR_DETAIL_BYTES_MAX, "%s: byte %zu: %s", loader->file, at, reason);
    return false;
}

/* Reads the next event, which must be of this kind. */
static bool expect(struct loader *loader, struct json_event *event, enum json_kind kind)
{
    return (json_next(&loader->reader, event) == ERR_OK && event->kind == kind) || refuse_json(loader);
}

/* Takes a token's text from the alphabet of printable characters that files write bytes in back to bytes, in place.
 * Returns the bytes; 0 if a character is not of the alphabet. */
static size_t from_alphabet(char *text, size_t bytes)
{
    size_t end = 0;
    for (size_t at = 0; at < bytes;) {
        uint32_t code = 0;
        int step = utf8_decode(text + at, bytes - at, &code);
        if (step <= 0) {
            return 0;
        }
        at += (size_t)step;
        bool is_itself = (code >= '!' && code <= '~') || (code >= 0xa1 && code <= 0xff && code != 0xad);
        if (is_itself) {
            text[end++] = (char)(unsigned char)code;
        } else if (code >= 0x100 && code <= 0x143) {
            /* The bytes that are not printable, in order: 00..20, 7F..A0, AD. */
            uint32_t nth = code - 0x100;
            text[end++] = (char)(unsigned char)(nth <= 0x20 ? nth : nth <= 0x42 ? nth - 0x21 + 0x7f : 0xad);
        } else {
            return 0;
        }
    }
    return end;
}

/* {"token": id, ...} */
static bool load_vocab_map(struct loader *loader)
{
    struct json_event event;
    struct json_event number;
    if (!expect(loader, &event, JSON_OBJECT_BEGIN)) {
        return false;
    }
    while (json_next(&loader->reader, &event) == ERR_OK && event.kind == JSON_KEY) {
        int64_t id;
        if (!expect(loader, &number, JSON_NUMBER)) {
            return false;
        }
        size_t bytes = from_alphabet(event.text, event.bytes);
        if (bytes == 0 || !json_number_i64(number.text, number.bytes, &id)) {
            return refuse(loader, "not a byte-level token", event.text, event.bytes);
        }
        const char *wrong = vocab_add_token(loader->vocab, id, event.text, bytes);
        if (wrong != NULL) {
            return refuse(loader, wrong, number.text, number.bytes);
        }
    }
    return event.kind == JSON_OBJECT_END || refuse_json(loader);
}

static bool load_merge(struct loader *loader, char *left, size_t left_bytes, char *right, size_t right_bytes)
{
    size_t left_length = from_alphabet(left, left_bytes);
    size_t right_length = from_alphabet(right, right_bytes);
    const char *wrong = "not a byte-level merge";
    if (left_length > 0 && right_length > 0) {
        wrong = vocab_add_merge(loader->vocab, vocab_find(loader->vocab, left, left_length),
                                vocab_find(loader->vocab, right, right_length));
    }
    return wrong == NULL || refuse(loader, wrong, left, left_length);
}

/* One merge as a line: "left right". */
static bool load_merge_line(struct loader *loader, char *line, size_t bytes)
{
    char *gap = memchr(line, ' ', bytes);
    if (gap == NULL) {
        return refuse(loader, "not a merge", line, bytes);
    }
    return load_merge(loader, line, (size_t)(gap - line), gap + 1, bytes - (size_t)(gap - line) - 1);
}

/* ["a b", ...] or [["a","b"], ...] */
static bool load_merge_array(struct loader *loader)
{
    struct json_event event;
    struct json_event left;
    struct json_event right;
    if (!expect(loader, &event, JSON_ARRAY_BEGIN)) {
        return false;
    }
    while (json_next(&loader->reader, &event) == ERR_OK && event.kind != JSON_ARRAY_END) {
        if (event.kind == JSON_STRING) {
            if (!load_merge_line(loader, event.text, event.bytes)) {
                return false;
            }
        } else if (event.kind != JSON_ARRAY_BEGIN) {
            return refuse_json(loader);
        } else if (!expect(loader, &left, JSON_STRING) || !expect(loader, &right, JSON_STRING) ||
                   !load_merge(loader, left.text, left.bytes, right.text, right.bytes) ||
                   !expect(loader, &event, JSON_ARRAY_END)) {
            return false;
        }
        event.kind = JSON_NONE;
    }
    return event.kind == JSON_ARRAY_END || refuse_json(loader);
}

static bool load_merge_file(struct loader *loader, struct tokenizer_file file)
{
    size_t at = 0;
    loader->file = "merges.txt";
    while (at < file.length) {
        char *line = file.bytes + at;
        const char *end = memchr(line, '\n', file.length - at);
        size_t bytes = end == NULL ? file.length - at : (size_t)(end - line);
        at += bytes + 1;
        if (bytes > 0 && line[bytes - 1] == '\r') {
            bytes--;
        }
        bool is_version = bytes >= 8 && memcmp(line, "#version", 8) == 0;
        if (bytes > 0 && !is_version && !load_merge_line(loader, line, bytes)) {
            return false;
        }
    }
    return true;
}

/* {"content": "<|im_end|>", "special": true, ...}, of which the opening brace was read. `id` is -1 if it is inside. */
static bool load_added_token(struct loader *loader, int64_t id)
{
    struct json_event key;
    struct json_event value;
    struct json_event content = {.kind = JSON_NONE};
    bool is_special = false;

    while (json_next(&loader->reader, &key) == ERR_OK && key.kind == JSON_KEY) {
        if (json_next(&loader->reader, &value) != ERR_OK) {
            return refuse_json(loader);
        }
        bool is_true = value.kind == JSON_TRUE;
        if (json_event_is(&key, "content") && value.kind == JSON_STRING) {
            content = value;
        } else if (json_event_is(&key, "special")) {
            is_special = is_true;
        } else if (json_event_is(&key, "id") && value.kind == JSON_NUMBER) {
            (void)json_number_i64(value.text, value.bytes, &id);
        } else if (is_true && !json_event_is(&key, "normalized")) { /* NFC leaves the token's own text as it is */
            return refuse(loader, "an added token with an option that is not known", key.text, key.bytes);
        }
    }
    if (key.kind != JSON_OBJECT_END || content.kind != JSON_STRING) {
        return refuse_json(loader);
    }
    const char *wrong = vocab_add_special(loader->vocab, id, content.text, content.bytes, is_special);
    return wrong == NULL || refuse(loader, wrong, content.text, content.bytes);
}

/* tokenizer.json: [{"id": 1, "content": ...}, ...] */
static bool load_added_array(struct loader *loader)
{
    struct json_event event;
    if (!expect(loader, &event, JSON_ARRAY_BEGIN)) {
        return false;
    }
    while (json_next(&loader->reader, &event) == ERR_OK && event.kind == JSON_OBJECT_BEGIN) {
        if (!load_added_token(loader, -1)) {
            return false;
        }
    }
    return event.kind == JSON_ARRAY_END || refuse_json(loader);
}

/* tokenizer_config.json: {"1": {"content": ...}, ...} */
static bool load_added_decoder(struct loader *loader)
{
    struct json_event key;
    struct json_event event;
    if (!expect(loader, &event, JSON_OBJECT_BEGIN)) {
        return false;
    }
    while (json_next(&loader->reader, &key) == ERR_OK && key.kind == JSON_KEY) {
        int64_t id;
        if (!json_number_i64(key.text, key.bytes, &id)) {
            return refuse(loader, "not an id", key.text, key.bytes);
        }
        if (!expect(loader, &event, JSON_OBJECT_BEGIN) || !load_added_token(loader, id)) {
            return false;
        }
    }
    return key.kind == JSON_OBJECT_END || refuse_json(loader);
}

/* added_tokens.json: {"<|im_end|>": 2, ...}. It does not tell the special ones: those that nothing else names are. */
static bool load_added_map(struct loader *loader)
{
    struct json_event key;
    struct json_event value;
    if (!expect(loader, &key, JSON_OBJECT_BEGIN)) {
        return false;
    }
    while (json_next(&loader->reader, &key) == ERR_OK && key.kind == JSON_KEY) {
        int64_t id;
        if (!expect(loader, &value, JSON_NUMBER) || !json_number_i64(value.text, value.bytes, &id)) {
            return refuse_json(loader);
        }
        const char *wrong = vocab_add_special(loader->vocab, id, key.text, key.bytes, true);
        if (wrong != NULL) {
            return refuse(loader, wrong, key.text, key.bytes);
        }
    }
    return key.kind == JSON_OBJECT_END || refuse_json(loader);
}

/* Compares one flattened value with the pipeline. */
static bool check_row(struct loader *loader, const char *path, const struct json_event *value)
{
    bool is_known = false;
    for (size_t i = 0; i < PIPELINE_ROWS && !is_known; i++) {
        const struct pipeline_row *row = &pipeline[i];
        if (strcmp(row->path, path) == 0) {
            is_known = row->value == NULL ||
                       (strlen(row->value) == value->bytes && memcmp(row->value, value->text, value->bytes) == 0);
            loader->seen_rows |= (uint64_t)is_known << i;
        }
    }
    if (!is_known) {
        int shown = value->bytes > 160 ? 160 : (int)value->bytes;
        (void)snprintf(loader->detail, ERROR_DETAIL_BYTES_MAX, "%s: %s is not supported: %.*s", loader->file, path,
                       shown, value->text);
    }
    return is_known;
}

/* A path that grows and shrinks as values nest. */
struct walk {
    char path[ROW_PATH_BYTES_MAX];
    size_t length;                      /* of the path of the innermost open level */
    size_t lengths[JSON_DEPTH_MAX + 1]; /* of those outside it */
    uint32_t index[JSON_DEPTH_MAX + 1]; /* next item, if the level is an array */
    bool is_array[JSON_DEPTH_MAX + 1];
    uint32_t depth;
};

static void walk_name(struct walk *walk, const char *name, size_t bytes)
{
    (void)snprintf(walk->path + walk->length, ROW_PATH_BYTES_MAX - walk->length, ".%.*s", bytes > 64 ? 64 : (int)bytes,
                   name);
}

/* Flattens the value that comes next and checks each scalar in it; `name` is its path. */
static bool check_value(struct loader *loader, const char *name)
{
    struct walk walk = {.depth = 0};
    (void)snprintf(walk.path, ROW_PATH_BYTES_MAX, "%s", name);

    do {
        struct json_event event;
        if (json_next(&loader->reader, &event) != ERR_OK) {
            return refuse_json(loader);
        }
        if (event.kind == JSON_KEY) {
            walk_name(&walk, event.text, event.bytes);
            continue;
        }
        if (event.kind == JSON_OBJECT_END || event.kind == JSON_ARRAY_END) {
            walk.length = walk.lengths[walk.depth--];
            continue;
        }
        if (walk.is_array[walk.depth]) {
            char number[16];
            int bytes = snprintf(number, sizeof number, "%u", walk.index[walk.depth]++);
            walk_name(&walk, number, (size_t)bytes);
        }
        if (event.kind == JSON_OBJECT_BEGIN || event.kind == JSON_ARRAY_BEGIN) {
            walk.lengths[++walk.depth] = walk.length;
            walk.length = strlen(walk.path);
            walk.index[walk.depth] = 0;
            walk.is_array[walk.depth] = event.kind == JSON_ARRAY_BEGIN;
        } else if (!check_row(loader, walk.path, &event)) {
            return false;
        }
    } while (walk.depth > 0);
    return true;
}

static bool check_all_seen(struct loader *loader)
{
    for (size_t i = 0; i < PIPELINE_ROWS; i++) {
        if (pipeline[i].is_required && (loader->seen_rows >> i & 1) == 0) {
            return refuse(loader, "no value at", pipeline[i].path, strlen(pipeline[i].path));
        }
    }
    return true;
}

/* Opens a reader over a part of a file that was skipped before, and loads it. */
static bool load_span(struct loader *loader, struct json_span span, bool (*load)(struct loader *))
{
    struct json_reader outer = loader->reader;
    if (span.length == 0) {
        return true;
    }
    json_open(&loader->reader, outer.writable + (span.bytes - outer.bytes), span.length);
    bool is_loaded = load(loader);
    loader->reader = outer;
    return is_loaded;
}

/* The "model" object: vocabulary and merges are kept for later, the rest is checked. */
static bool read_model(struct loader *loader, struct json_span *vocab, struct json_span *merges)
{
    struct json_event key;
    if (!expect(loader, &key, JSON_OBJECT_BEGIN)) {
        return false;
    }
    while (json_next(&loader->reader, &key) == ERR_OK && key.kind == JSON_KEY) {
        char path[ROW_PATH_BYTES_MAX];
        struct json_span *span = json_event_is(&key, "vocab") ? vocab : json_event_is(&key, "merges") ? merges : NULL;
        (void)snprintf(path, sizeof path, "model.%.*s", key.bytes > 64 ? 64 : (int)key.bytes, key.text);
        if (span != NULL ? json_skip_raw(&loader->reader, span) != ERR_OK : !check_value(loader, path)) {
            return span != NULL ? refuse_json(loader) : false;
        }
    }
    return key.kind == JSON_OBJECT_END || refuse_json(loader);
}

static bool load_tokenizer_json(struct loader *loader, struct tokenizer_file file)
{
    struct json_event key;
    struct json_span vocab = {NULL, 0};
    struct json_span merges = {NULL, 0};
    struct json_span added = {NULL, 0};

    loader->file = "tokenizer.json";
    json_open(&loader->reader, file.bytes, file.length);
    if (!expect(loader, &key, JSON_OBJECT_BEGIN)) {
        return false;
    }
    while (json_next(&loader->reader, &key) == ERR_OK && key.kind == JSON_KEY) {
        bool is_read = true;
        if (json_event_is(&key, "model")) {
            is_read = read_model(loader, &vocab, &merges);
        } else if (json_event_is(&key, "normalizer") || json_event_is(&key, "pre_tokenizer") ||
                   json_event_is(&key, "post_processor") || json_event_is(&key, "decoder")) {
            char name[32] = {0};
            memcpy(name, key.text, key.bytes);
            is_read = check_value(loader, name);
        } else if (json_event_is(&key, "added_tokens")) {
            is_read = json_skip_raw(&loader->reader, &added) == ERR_OK || refuse_json(loader);
        } else {
            is_read = json_skip(&loader->reader) == ERR_OK || refuse_json(loader);
        }
        if (!is_read) {
            return false;
        }
    }
    if (key.kind != JSON_OBJECT_END) {
        return refuse_json(loader);
    }
    return check_all_seen(loader) && load_span(loader, vocab, load_vocab_map) &&
           load_span(loader, merges, load_merge_array) && load_span(loader, added, load_added_array);
}

static bool is_known_class(const struct json_event *value)
{
    return value->kind == JSON_STRING &&
           (json_event_is(value, "Qwen2Tokenizer") || json_event_is(value, "Qwen2TokenizerFast"));
}

/* Reads tokenizer_config.json: its added tokens, and, where it alone tells the pipeline (`is_alone`), that too. */
static bool load_config(struct loader *loader, struct tokenizer_file file, bool is_alone)
{
    struct json_event key;
    struct json_event value;
    loader->file = "tokenizer_config.json";
    json_open(&loader->reader, file.bytes, file.length);
    if (!expect(loader, &key, JSON_OBJECT_BEGIN)) {
        return false;
    }
    while (json_next(&loader->reader, &key) == ERR_OK && key.kind == JSON_KEY) {
        if (json_event_is(&key, "added_tokens_decoder")) {
            if (!load_added_decoder(loader)) {
                return false;
            }
            continue;
        }
        bool is_class = json_event_is(&key, "tokenizer_class");
        bool is_prefix = json_event_is(&key, "add_prefix_space") || json_event_is(&key, "add_bos_token");
        if (json_next(&loader->reader, &value) != ERR_OK) {
            return refuse_json(loader);
        }
        if (is_alone && ((is_class && !is_known_class(&value)) || (is_prefix && value.kind == JSON_TRUE))) {
            return refuse(loader, "a tokenizer that is not known, by its", key.text, key.bytes);
        }
        if (json_skip(&loader->reader) != ERR_OK) {
            return refuse_json(loader);
        }
    }
    return key.kind == JSON_OBJECT_END || refuse_json(loader);
}

static bool load_map_file(struct loader *loader, const char *name, struct tokenizer_file file,
                          bool (*load)(struct loader *))
{
    loader->file = name;
    json_open(&loader->reader, file.bytes, file.length);
    return load(loader);
}

/* Marks the tokens that merging their own bytes gives. */
static void mark_closed(struct vocab *vocab)
{
    for (uint32_t id = 0; id < vocab->id_limit; id++) {
        size_t bytes;
        int32_t first = VOCAB_NONE;
        struct bpe_out out = {&first, 1, 0};
        const char *text = vocab_text(vocab, (int32_t)id, &bytes);
        if (bytes == 0 || bytes > BPE_SHORT_BYTES_MAX || vocab_find(vocab, text, bytes) != (int32_t)id) {
            continue;
        }
        bpe_word(vocab, text, bytes, NULL, 0, &out);
        if (out.count == 1 && first == (int32_t)id) {
            vocab->flags[id] |= VOCAB_CLOSED;
        }
    }
}

bool vocab_load(struct vocab *vocab, const struct tokenizer_files *files, char *detail)
{
    struct loader loader = {.vocab = vocab, .detail = detail, .file = "tokenizer.json"};
    bool has_one_file = files->tokenizer_json.bytes != NULL;
    bool has_parts = files->vocab_json.bytes != NULL && files->merges_txt.bytes != NULL;

    assert(vocab->text_bytes == 0);
    if (!has_one_file && !has_parts) {
        return refuse(&loader, "absent, and vocab.json with merges.txt too", "", 0);
    }
    if (has_one_file ? !load_tokenizer_json(&loader, files->tokenizer_json)
                     : !load_map_file(&loader, "vocab.json", files->vocab_json, load_vocab_map) ||
                           !load_merge_file(&loader, files->merges_txt)) {
        return false;
    }
    for (int byte = 0; byte < 256; byte++) {
        if (vocab->byte_ids[byte] == VOCAB_NONE) {
            char number[8];
            int shown = snprintf(number, sizeof number, "%02x", byte);
            return refuse(&loader, "no token for the byte", number, (size_t)shown);
        }
    }
    if (files->tokenizer_config_json.bytes != NULL &&
        !load_config(&loader, files->tokenizer_config_json, !has_one_file)) {
        return false;
    }
    if (files->added_tokens_json.bytes != NULL &&
        !load_map_file(&loader, "added_tokens.json", files->added_tokens_json, load_added_map)) {
        return false;
    }
    mark_closed(vocab);
    return true;
}
