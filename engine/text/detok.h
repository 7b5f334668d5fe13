/* detok: ids into text, a piece at a time, without keeping the text. */
#ifndef ENGINE_TEXT_DETOK_H
#define ENGINE_TEXT_DETOK_H

#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

/* A place in the text of an array of ids that grows. The text is what the reference decodes: the tokens' bytes one
 * after the other, special tokens left out on demand, what is not UTF-8 replaced by U+FFFD. */
struct detok {
    uint64_t text_bytes; /* of text given out so far */
    size_t next_id;      /* ids before it are used up */
    uint32_t token_at;   /* bytes of ids[next_id] that are used up */
    uint8_t held_count;
    char held[UTF8_BYTES_MAX]; /* the beginning of a character whose rest is in a later token */
    bool skips_special;
};

void detok_open(struct detok *detok, bool skips_special);

/* Goes on with the text of ids[0 .. count), the same ids as before and perhaps more: writes into `out` what follows,
 * whole characters only, and returns its bytes. It stops when `out` is full (UTF8_BYTES_MAX bytes always take a
 * character), when text_bytes is limit_bytes (which must lie between two characters), or when the rest is the beginning
 * of a character. If `is_final`, no id will follow: such a rest becomes U+FFFD. 0: nothing more for now. */
size_t detok_read(struct detok *detok, const struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                  bool is_final, uint64_t limit_bytes, char *out, size_t capacity);

#endif
