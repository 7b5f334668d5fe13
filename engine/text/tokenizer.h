/* tokenizer: Qwen's byte-level BPE, text to ids and ids to bytes, equal to the reference's on every text. */
#ifndef ENGINE_TEXT_TOKENIZER_H
#define ENGINE_TEXT_TOKENIZER_H

#include "engine/err.h"
#include "engine/text/vocab.h"
#include "engine/text/vocab_load.h"

struct tokenizer {
    struct vocab vocab;
    bool begins_added[256]; /* a first byte of an added token */
};

/* Part of a text: [begin, end). */
struct text_range {
    size_t begin, end;
};

/* Memory that a tokenizer needs, known from the model's vocab_size alone. */
size_t tokenizer_bytes(uint32_t vocab_size);

/* Opens a tokenizer in `memory` (tokenizer_bytes(vocab_size), aligned to 8, kept by the caller). Start-up only. False:
 * `detail` (ERROR_DETAIL_BYTES_MAX) says which file is wrong, where, and why. The files' buffers are used up. */
bool tokenizer_open(struct tokenizer *tokenizer, uint32_t vocab_size, const struct tokenizer_files *files, void *memory,
                    size_t bytes, char *detail);

/* Scratch that tokenizer_encode needs for texts of up to `text_bytes` bytes, in NFC too. */
size_t tokenizer_scratch_bytes(size_t text_bytes);

/* Encodes `text` into ids[0 .. capacity). Added tokens are matched, leftmost and then longest, where they lie inside
 * one of `ranges` (ascending, not overlapping); everywhere else they are plain text, so no client can forge them.
 *   ERR_OK: *count ids.
 *   ERR_CONTEXT_EXCEEDED: more than `capacity`; *count is the real number.
 *   ERR_TOO_DEEP: the text, or its NFC, is longer than the scratch was made for.
 *   ERR_BAD_FIELD: not UTF-8.
 * `scratch` is aligned to 8. Time is linear in the text, with a logarithm for long words. */
ERR_CHECKED enum err tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t bytes,
                                      const struct text_range *ranges, size_t range_count, int32_t *ids,
                                      size_t capacity, void *scratch, size_t scratch_bytes, size_t *count);

/* The bytes of a token, perhaps part of a character. None for ids without text, in range or not. */
const char *tokenizer_token(const struct tokenizer *tokenizer, int32_t id, size_t *bytes);

/* True for tokens that decoding with skip_special_tokens leaves out. */
bool tokenizer_is_special(const struct tokenizer *tokenizer, int32_t id);

/* The id of the token with exactly this text, added ones first; or VOCAB_NONE. */
int32_t tokenizer_find(const struct tokenizer *tokenizer, const char *text);

#endif
