/* unicode: the character classes and the normal form that Qwen's tokenizer is defined with. */
#ifndef ENGINE_TEXT_UNICODE_H
#define ENGINE_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* \p{L}, \p{N} and \s of the reference's regular expressions; these never overlap. */
enum unicode_class { UNICODE_OTHER, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_SPACE };

/* Class of a code point (of any value up to 10FFFF), as in Unicode 16. */
enum unicode_class unicode_class(uint32_t code);

/* True for what Python's repr prints as it is: no control, format, private or unassigned code point, and no white space
 * but the blank. */
bool unicode_is_printable(uint32_t code);

/* Length of a beginning of `text` (valid UTF-8) that is in NFC and whose NFC does not depend on what follows. Equal to
 * `bytes` for nearly all real text, at the cost of one scan. */
size_t unicode_nfc_prefix(const char *text, size_t bytes);

/* Bytes of scratch for unicode_nfc of a text of `bytes` bytes. */
size_t unicode_nfc_scratch_bytes(size_t bytes);

/* Writes the NFC of `text` (valid UTF-8, not overlapping `out`) and its length. False if it does not fit into
 * `capacity` (NFC can be up to three times as long as the text). Linear in `bytes`, whatever the marks. `scratch` is
 * aligned to 4. */
bool unicode_nfc(const char *text, size_t bytes, char *out, size_t capacity, void *scratch, size_t scratch_bytes,
                 size_t *length);

#endif
