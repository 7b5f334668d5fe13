/* json_out: a bounded JSON writer into the caller's buffer. */
#ifndef ENGINE_JSON_OUT_H
#define ENGINE_JSON_OUT_H

#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_out {
    char *bytes;
    size_t capacity;
    size_t length; /* bytes written; never over capacity */
    uint32_t depth;
    bool has_overflowed; /* sticky: something did not fit; what is in the buffer is then not JSON */
    bool is_after_key;   /* a value must follow */
    uint64_t has_item[(JSON_DEPTH_MAX + 64) / 64]; /* bit d: level d holds an item, so a comma comes first */
};

/* Starts a document in `bytes`, which stays the caller's. */
void json_out_open(struct json_out *out, char *bytes, size_t capacity);

void json_out_object_begin(struct json_out *out);
void json_out_object_end(struct json_out *out);
void json_out_array_begin(struct json_out *out);
void json_out_array_end(struct json_out *out);

/* Keys are constants of the program: printable ASCII without quotes or backslashes. */
void json_out_key(struct json_out *out, const char *key);

/* Text of any origin: escaped; bytes that are not UTF-8 become U+FFFD. */
void json_out_string(struct json_out *out, const char *text, size_t bytes);
void json_out_text(struct json_out *out, const char *text); /* the same, up to a NUL */
void json_out_i64(struct json_out *out, int64_t value);
void json_out_u64(struct json_out *out, uint64_t value);
void json_out_f64(struct json_out *out, double value); /* shortest form that reads back equal; NaN, infinity: null */
void json_out_bool(struct json_out *out, bool value);
void json_out_null(struct json_out *out);

/* A value that is JSON already, copied as it stands. */
void json_out_raw(struct json_out *out, const char *json, size_t bytes);

/* "key": value in one call, for the usual ones. */
void json_out_key_text(struct json_out *out, const char *key, const char *text);
void json_out_key_i64(struct json_out *out, const char *key, int64_t value);
void json_out_key_bool(struct json_out *out, const char *key, bool value);

/* True if nothing overflowed and every object and array is closed. */
bool json_out_is_whole(const struct json_out *out);

/* Bytes that `text` takes inside quotes once escaped. */
size_t json_escaped_bytes(const char *text, size_t bytes);

/* Escapes as much of text[*at .. bytes) as fits into `out` (without quotes), whole characters only, and moves *at on.
 * Returns the bytes written: 0 if nothing is left or not even the next character fits (JSON_ESCAPE_BYTES_MAX always
 * do). So a long string passes through a small ring, and joined pieces equal the whole. */
enum { JSON_ESCAPE_BYTES_MAX = 6 };
size_t json_escape(const char *text, size_t bytes, size_t *at, char *out, size_t capacity);

/* Shortest decimal form of a finite double that reads back equal (1.5, 1e+22, 100.0 as `100.0`): what Python prints.
 * `out` has JSON_F64_BYTES_MAX bytes; returns the length. */
enum { JSON_F64_BYTES_MAX = 32 };
int json_f64_print(double value, char *out);

#endif
