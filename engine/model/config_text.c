/* config_text: values by path, read anew at each question. The files are a few kilobytes and are asked some fifty
 * times, so there is no tree and no memory.
 */
#include "engine/model/config_text.h"

#include "engine/start.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool config_span_is(struct json_span span, const char *word)
{
    return span.length == strlen(word) && memcmp(span.bytes, word, span.length) == 0;
}

static void check_object(struct json_span text, const char *name, enum start_exit code)
{
    struct json_reader reader;
    struct json_event event = {.kind = JSON_NONE};

    json_open_raw(&reader, text.bytes, text.length);
    enum err err = json_next(&reader, &event);
    bool is_object = err == ERR_OK && event.kind == JSON_OBJECT_BEGIN;
    while (err == ERR_OK && event.kind != JSON_END) {
        err = json_next(&reader, &event);
    }
    if (err != ERR_OK) {
        start_refuse(code, "%s: %s at byte %zu", name, reader.reason, reader.error_at);
    }
    if (!is_object) {
        start_refuse(code, "%s: not a JSON object", name);
    }
}

void config_text_open(struct config_text *config)
{
    assert(config->file != NULL);
    assert(config->over.length == 0 || config->over_name != NULL);
    if (config->text.length > 0) {
        check_object(config->text, config->file, START_BAD_MODEL);
    }
    if (config->over.length > 0) {
        check_object(config->over, config->over_name, START_USAGE);
    }
}

/* The value of one key of the object `text`; the last one wins, as in Python. The text was checked before. */
static bool find_key(struct json_span text, const char *key, size_t key_bytes, struct json_span *value)
{
    struct json_reader reader;
    struct json_event event;
    bool is_found = false;

    assert(key_bytes > 0 && value != NULL);
    json_open_raw(&reader, text.bytes, text.length);
    if (json_next(&reader, &event) != ERR_OK || event.kind != JSON_OBJECT_BEGIN) {
        return false;
    }
    while (json_next(&reader, &event) == ERR_OK && event.kind == JSON_KEY) {
        bool is_key = event.bytes == key_bytes && memcmp(event.text, key, key_bytes) == 0;
        struct json_span span;
        if (json_skip_raw(&reader, &span) != ERR_OK) {
            return false;
        }
        if (is_key) {
            *value = span;
            is_found = true;
        }
    }
    return is_found;
}

static bool find_path(struct json_span text, const char *path, struct json_span *value)
{
    if (text.length == 0) {
        return false;
    }
    for (;;) {
        const char *dot = strchr(path, '.');
        size_t key_bytes = dot != NULL ? (size_t)(dot - path) : strlen(path);
        if (!find_key(text, path, key_bytes, value)) {
            return false;
        }
        if (dot == NULL) {
            return true;
        }
        text = *value;
        path = dot + 1;
    }
}

const char *config_text_path(const struct config_text *config, const char *key, char *path)
{
    const struct json_span texts[] = {config->over, config->text};
    struct json_span value;

    assert(key != NULL && path != NULL);
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            (void)snprintf(path, CONFIG_PATH_BYTES, k == 0 ? "text_config.%s" : "%s", key);
            if (find_path(texts[i], path, &value)) {
                return path;
            }
        }
    }
    return path;
}

bool config_find(const struct config_text *config, const char *path, struct json_span *value)
{
    assert(path != NULL && value != NULL);
    if (!find_path(config->over, path, value) && !find_path(config->text, path, value)) {
        return false;
    }
    return !config_span_is(*value, "null");
}

static _Noreturn void refuse_type(const struct config_text *config, const char *path, struct json_span value,
                                  const char *expected)
{
    assert(value.length > 0 && value.bytes != NULL);
    int length = value.length > 60 ? 60 : (int)value.length;

    start_refuse(START_BAD_MODEL, "%s: \"%s\" is %.*s; expected %s", config->file, path, length, value.bytes, expected);
}

static bool number_of(struct json_span value, int64_t least, int64_t most, int64_t *number)
{
    assert(least <= most);
    return json_number_i64(value.bytes, value.length, number) && *number >= least && *number <= most;
}

static bool is_number(struct json_span value)
{
    return value.length > 0 && (value.bytes[0] == '-' || (value.bytes[0] >= '0' && value.bytes[0] <= '9'));
}

bool config_u32(const struct config_text *config, const char *path, uint32_t *value)
{
    struct json_span span;
    int64_t number = 0;

    if (!config_find(config, path, &span)) {
        return false;
    }
    if (!is_number(span) || !number_of(span, 0, UINT32_MAX, &number)) {
        refuse_type(config, path, span, "a whole number from 0 to 4294967295");
    }
    *value = (uint32_t)number;
    return true;
}

bool config_i32(const struct config_text *config, const char *path, int32_t *value)
{
    struct json_span span;
    int64_t number = 0;

    if (!config_find(config, path, &span)) {
        return false;
    }
    if (!is_number(span) || !number_of(span, INT32_MIN, INT32_MAX, &number)) {
        refuse_type(config, path, span, "a whole number of 32 bits");
    }
    *value = (int32_t)number;
    return true;
}

bool config_f64(const struct config_text *config, const char *path, double *value)
{
    struct json_span span;

    if (!config_find(config, path, &span)) {
        return false;
    }
    if (!is_number(span) || !json_number_f64(span.bytes, span.length, value)) {
        refuse_type(config, path, span, "a number");
    }
    return true;
}

bool config_bool(const struct config_text *config, const char *path, bool *value)
{
    struct json_span span;

    if (!config_find(config, path, &span)) {
        return false;
    }
    if (!config_span_is(span, "true") && !config_span_is(span, "false")) {
        refuse_type(config, path, span, "true or false");
    }
    *value = span.bytes[0] == 't';
    return true;
}

bool config_string(const struct config_text *config, const char *path, struct json_span *value)
{
    assert(value != NULL);
    if (!config_find(config, path, value)) {
        return false;
    }
    if (value->length < 2 || value->bytes[0] != '"') {
        refuse_type(config, path, *value, "a string");
    }
    value->bytes++;
    value->length -= 2;
    return true;
}

/* Calls for each number of a list; the caller's loop sees them one by one. */
struct list_walk {
    struct json_reader reader;
    struct json_span single; /* the value is one number, not a list */
    bool is_single, is_done;
};

static bool list_begin(struct list_walk *walk, struct json_span span)
{
    struct json_event event;

    *walk = (struct list_walk){.single = span, .is_single = is_number(span)};
    if (walk->is_single) {
        return true;
    }
    json_open_raw(&walk->reader, span.bytes, span.length);
    return json_next(&walk->reader, &event) == ERR_OK && event.kind == JSON_ARRAY_BEGIN;
}

/* 1: *number is the next; 0: the list is over; -1: something else than a number. */
static int list_next(struct list_walk *walk, struct json_span *number)
{
    struct json_event event;

    if (walk->is_single) {
        *number = walk->single;
        int result = walk->is_done ? 0 : 1;
        walk->is_done = true;
        return result;
    }
    if (json_next(&walk->reader, &event) != ERR_OK) {
        return -1;
    }
    *number = (struct json_span){event.text, event.bytes};
    return event.kind == JSON_ARRAY_END ? 0 : event.kind == JSON_NUMBER ? 1 : -1;
}

bool config_i32_list(const struct config_text *config, const char *path, int32_t *values, uint32_t capacity,
                     uint32_t *count)
{
    struct json_span span, number;
    struct list_walk walk;
    int64_t value = 0;

    assert(values != NULL && capacity > 0);
    *count = 0;
    if (!config_find(config, path, &span)) {
        return false;
    }
    int more = list_begin(&walk, span) ? list_next(&walk, &number) : -1;
    for (; more == 1 && *count < capacity && number_of(number, INT32_MIN, INT32_MAX, &value);
         more = list_next(&walk, &number)) {
        values[(*count)++] = (int32_t)value;
    }
    if (more != 0) {
        refuse_type(config, path, span, "a list of whole numbers (not too long)");
    }
    return true;
}

bool config_f64_list(const struct config_text *config, const char *path, double *values, uint32_t capacity,
                     uint32_t *count)
{
    struct json_span span, number;
    struct list_walk walk;
    double value = 0;

    assert(values != NULL && capacity > 0);
    *count = 0;
    if (!config_find(config, path, &span)) {
        return false;
    }
    int more = list_begin(&walk, span) ? list_next(&walk, &number) : -1;
    for (; more == 1 && *count < capacity && json_number_f64(number.bytes, number.length, &value);
         more = list_next(&walk, &number)) {
        values[(*count)++] = value;
    }
    if (more != 0) {
        refuse_type(config, path, span, "a list of numbers (not too long)");
    }
    return true;
}
