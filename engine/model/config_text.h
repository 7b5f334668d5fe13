/* config_text: values out of one of a model's JSON files by path, with the user's JSON laid over it.
 *
 * Start-up only. A path is "key.key"; the file's and the overlay's objects are merged level by level, lists and scalars
 * are replaced whole. null counts as absent. Getters refuse to start (code 4), naming file and key, when a value is
 * there but of the wrong type; they return false when there is none.
 */
#ifndef MODEL_CONFIG_TEXT_H
#define MODEL_CONFIG_TEXT_H

#include "engine/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONFIG_PATH_BYTES = 96 };

struct config_text {
    const char *file;      /* for messages */
    const char *over_name; /* the overlay's flag, for messages */
    struct json_span text; /* length 0: no such file */
    struct json_span over; /* length 0: none */
};

/* Checks that both texts are JSON objects; a broken overlay refuses with code 2. The bytes stay the caller's. */
void config_text_open(struct config_text *config);

/* Where the text model's value of `key` stands: "text_config.key" or "key"; the overlay's word comes before the file's,
 * the nested form before the flat one. Writes the path into `path` (CONFIG_PATH_BYTES) and returns it. */
const char *config_text_path(const struct config_text *config, const char *key, char *path);

/* The raw value at `path`. */
bool config_find(const struct config_text *config, const char *path, struct json_span *value);

bool config_u32(const struct config_text *config, const char *path, uint32_t *value);
bool config_i32(const struct config_text *config, const char *path, int32_t *value);
bool config_f64(const struct config_text *config, const char *path, double *value);
bool config_bool(const struct config_text *config, const char *path, bool *value);

/* A string's raw text, still escaped: good for comparing with plain words. */
bool config_string(const struct config_text *config, const char *path, struct json_span *value);

/* Reads a list of at most `capacity` whole numbers (a single number counts as a list of one). */
bool config_i32_list(const struct config_text *config, const char *path, int32_t *values, uint32_t capacity,
                     uint32_t *count);
bool config_f64_list(const struct config_text *config, const char *path, double *values, uint32_t capacity,
                     uint32_t *count);

/* True if the span is exactly `word`. */
bool config_span_is(struct json_span span, const char *word);

#endif
