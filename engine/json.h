/* json: a pull parser over a buffer, strict as RFC 8259, without a tree and without recursion. */
#ifndef ENGINE_JSON_H
#define ENGINE_JSON_H

#include "config.h"
#include "engine/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_kind {
    JSON_NONE, /* nothing was read yet */
    JSON_OBJECT_BEGIN,
    JSON_OBJECT_END,
    JSON_ARRAY_BEGIN,
    JSON_ARRAY_END,
    JSON_KEY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_END, /* the document is complete; nothing but white space follows */
};

/* Part of the caller's buffer; no NUL behind it. */
struct json_span {
    const char *bytes;
    size_t length;
};

struct json_event {
    enum json_kind kind;
    char *text; /* KEY, STRING: valid UTF-8, unescaped (as it stands in the file for json_open_raw), NUL bytes possible;
                   NUMBER: the literal; otherwise the first byte of the token */
    size_t bytes; /* length of `text` */
    size_t at;    /* offset of the token's first byte (of a string: its quote) */
};

struct json_reader {
    const char *bytes;
    char *writable; /* the same buffer, or NULL: strings are left as they stand */
    size_t length;
    size_t at;
    uint32_t depth;                                 /* open objects and arrays */
    uint8_t expected;                               /* what may come next */
    uint8_t last_kind;                              /* of the event that json_next gave last */
    size_t last_at;                                 /* its offset */
    uint64_t is_object[(JSON_DEPTH_MAX + 63) / 64]; /* bit d: nesting level d is an object */
    enum err err;                                   /* sticky */
    const char *reason;                             /* of a refusal: a short constant phrase, for the message */
    size_t error_at;                                /* and the byte offset that it is about */
};

/* Opens a reader over a document, or over the raw span of one value. json_open unescapes strings in place, so the
 * buffer is only good for one reading. json_open_raw never writes and gives strings still escaped (but validated). The
 * buffer stays the caller's and must outlive the reader and the events. */
void json_open(struct json_reader *reader, char *bytes, size_t length);
void json_open_raw(struct json_reader *reader, const char *bytes, size_t length);

/* Reads the next event. After the last value comes JSON_END, again and again.
 * ERR_BAD_JSON: not JSON. ERR_TOO_DEEP: more than JSON_DEPTH_MAX levels, or a number longer than JSON_NUMBER_BYTES_MAX.
 * Both set reader->reason and reader->error_at, and every later call gives the same. Duplicate keys are the caller's
 * affair. A lone \u surrogate becomes U+FFFD. */
ERR_CHECKED enum err json_next(struct json_reader *reader, struct json_event *event);

/* Skips one value, validating it: after a KEY (or before the first event) the value that comes; after OBJECT_BEGIN or
 * ARRAY_BEGIN the rest of it, end included; after a scalar nothing. */
ERR_CHECKED enum err json_skip(struct json_reader *reader);

/* As json_skip, but the buffer is left untouched, and `span` is the whole value from its first to its last byte, for a
 * later reader. After a KEY, before the first event, or right after OBJECT_BEGIN or ARRAY_BEGIN. */
ERR_CHECKED enum err json_skip_raw(struct json_reader *reader, struct json_span *span);

/* True if a KEY's or STRING's text is `text`. */
bool json_event_is(const struct json_event *event, const char *text);

/* The value of a NUMBER literal if it is a whole number in range (1, 1.0, 1e3, -0 too); false otherwise, then *value
 * is unchanged. Exact: no way through a double. */
bool json_number_i64(const char *literal, size_t bytes, int64_t *value);

/* The value of a NUMBER literal, correctly rounded; false if it overflows. Needs the "C" locale, which the program
 * never leaves. */
bool json_number_f64(const char *literal, size_t bytes, double *value);

/* Unescapes the text of a string that a raw reader gave (so it is valid), from *at on, as much as fits into `out` (4
 * bytes always take a character), and moves *at on. Returns the bytes written; 0: nothing is left. */
size_t json_unescape_some(const char *text, size_t bytes, size_t *at, char *out, size_t capacity);

/* The same for the whole text: `out` has room for `bytes` bytes, and may be `text` itself. Returns the bytes written.
 */
size_t json_unescape(const char *text, size_t bytes, char *out);

#endif
