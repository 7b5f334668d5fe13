/* base64: decoding over itself.
 *
 * The grammar is "forgiving-base64 decode" of the WHATWG Infra standard: standard alphabet; tab, line feed, form feed,
 * carriage return and space are skipped anywhere; padding is complete or left out; unused low bits are ignored.
 */
#ifndef ENGINE_IMAGE_BASE64_H
#define ENGINE_IMAGE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes text[0 .. text_bytes) to its own beginning; *decoded_bytes <= 3/4 text_bytes + 2. False if it is not base64;
 * then the text is overwritten in part. */
bool base64_decode_in_place(unsigned char *text, size_t text_bytes, size_t *decoded_bytes);

/* The vector part of it: decodes whole groups of 32 characters from `text` to `out` (out <= text, 32 bytes written
 * at each group's 24) for as long as they are all of the alphabet. Returns how many characters it took. Needs AVX2. */
size_t base64_decode_groups_avx2(const unsigned char *text, size_t text_bytes, unsigned char *out);

#endif
