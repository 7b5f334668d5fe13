/* bpe: merges the bytes of one word into tokens. */
#ifndef ENGINE_TEXT_BPE_H
#define ENGINE_TEXT_BPE_H

#include "engine/text/vocab.h"

/* Where ids go: counted on beyond the capacity, so that a refusal can name the real number. */
struct bpe_out {
    int32_t *ids;
    size_t capacity, count;
};

enum { BPE_SHORT_BYTES_MAX = 48 }; /* words up to here need no scratch */

/* Bytes of scratch for a word of `word_bytes` bytes. */
size_t bpe_scratch_bytes(size_t word_bytes);

void bpe_put(struct bpe_out *out, int32_t id);

/* Appends the tokens of a word: again and again the leftmost pair of the lowest rank is merged. O(n log n). Every byte
 * must have a token. `scratch` is aligned to 4, of bpe_scratch_bytes(bytes), and not looked at for a short word. */
void bpe_word(const struct vocab *vocab, const char *word, size_t bytes, void *scratch, size_t scratch_bytes,
              struct bpe_out *out);

#endif
