/* utf8: one code point at a time, strict as RFC 3629. */
#ifndef ENGINE_TEXT_UTF8_H
#define ENGINE_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum {
    UTF8_BYTES_MAX = 4,         /* bytes of one code point */
    UTF8_REPLACEMENT_BYTES = 3, /* U+FFFD */
    UTF8_CODE_MAX = 0x10ffff,
};

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Looks at the code point at `bytes`, of which `length` bytes are there.
 *   > 0: valid; that many bytes, and *code is set.
 *     0: incomplete: all `length` bytes (perhaps none) are the beginning of a code point.
 *   < 0: invalid: minus the bytes that one U+FFFD stands for (the maximal subpart, as the Unicode standard and HF have
 * it). Overlong forms, surrogates and codes over U+10FFFF are invalid. */
int utf8_decode(const char *bytes, size_t length, uint32_t *code);

/* Writes `code` (a scalar value) into `out` of UTF8_BYTES_MAX bytes; returns the bytes used. */
int utf8_encode(uint32_t code, char *out);

/* Length of the longest valid beginning; equal to `length` if all of it is valid. */
size_t utf8_valid_bytes(const char *bytes, size_t length);

#endif
