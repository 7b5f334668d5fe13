/* tokenizer: Qwen's byte-level BPE, text to ids and ids to bytes, equal to the reference's on every text.
 *
 * Constant after opening: any number of threads may encode at once, each with its own scratch. A text goes through
 * these steps: added tokens split it; each piece between them is put into NFC, cut into words, and each word merged.
 */
#include "engine/text/tokenizer.h"

#include "engine/text/bpe.h"
#include "engine/text/pretoken.h"
#include "engine/text/unicode.h"
#include "engine/text/utf8.h"

#include <assert.h>
#include <string.h>

enum {
    ALIGNMENT = 8,
    REST_A_BYTE = 24, /* of scratch, beside the text itself: for merging one long word, or sorting as many marks */
    REST_FIXED = 64,
};

/* Scratch of one call: the piece in NFC, and behind it what sorting marks and merging words take in turn. */
struct work {
    const struct vocab *vocab;
    char *piece;
    size_t piece_capacity;
    void *rest;
    size_t rest_bytes;
    struct bpe_out out;
};

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t tokenizer_bytes(uint32_t vocab_size)
{
    return vocab_memory_bytes(vocab_size);
}

bool tokenizer_open(struct tokenizer *tokenizer, uint32_t vocab_size, const struct tokenizer_files *files, void *memory,
                    size_t bytes, char *detail)
{
    assert(bytes >= tokenizer_bytes(vocab_size));
    *tokenizer = (struct tokenizer){.begins_added = {false}};
    vocab_open(&tokenizer->vocab, vocab_size, memory, bytes);
    if (!vocab_load(&tokenizer->vocab, files, detail)) {
        return false;
    }
    for (uint32_t i = 0; i < tokenizer->vocab.added_count; i++) {
        size_t length;
        const char *text = vocab_text(&tokenizer->vocab, tokenizer->vocab.added_ids[i], &length);
        assert(length > 0);
        tokenizer->begins_added[(unsigned char)text[0]] = true;
    }
    return true;
}

size_t tokenizer_scratch_bytes(size_t text_bytes)
{
    assert(REST_A_BYTE * text_bytes + REST_FIXED >= unicode_nfc_scratch_bytes(text_bytes));
    assert(REST_A_BYTE * text_bytes + REST_FIXED >= bpe_scratch_bytes(text_bytes));
    return (1 + REST_A_BYTE) * text_bytes + REST_FIXED + ALIGNMENT;
}

/* The longest text that `scratch_bytes` are enough for. */
static size_t piece_capacity_for(size_t scratch_bytes)
{
    size_t fixed = REST_FIXED + ALIGNMENT;
    return scratch_bytes < fixed ? 0 : (scratch_bytes - fixed) / (1 + REST_A_BYTE);
}

static void encode_words(struct work *work, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const char *word = text + at;
        size_t word_bytes = pretoken_bytes(word, bytes - at);
        at += word_bytes;
        assert(word_bytes > 0 && at <= bytes);

        int32_t id = word_bytes <= BPE_SHORT_BYTES_MAX ? vocab_find(work->vocab, word, word_bytes) : VOCAB_NONE;
        if (id != VOCAB_NONE && (vocab_flags(work->vocab, id) & VOCAB_CLOSED) != 0) {
            bpe_put(&work->out, id);
        } else {
            bpe_word(work->vocab, word, word_bytes, work->rest, work->rest_bytes, &work->out);
        }
    }
}

/* Encodes a piece without added tokens in it. False if its NFC is too long. */
static bool encode_piece(struct work *work, const char *text, size_t bytes)
{
    size_t length = bytes;
    if (unicode_nfc_prefix(text, bytes) < bytes) {
        if (!unicode_nfc(text, bytes, work->piece, work->piece_capacity, work->rest, work->rest_bytes, &length)) {
            return false;
        }
        text = work->piece;
    }
    encode_words(work, text, length);
    return true;
}

/* The longest added token at the beginning of `text`, or VOCAB_NONE. */
static int32_t added_at(const struct vocab *vocab, const char *text, size_t bytes, size_t *length)
{
    for (uint32_t i = 0; i < vocab->added_count; i++) {
        const char *added = vocab_text(vocab, vocab->added_ids[i], length);
        if (*length <= bytes && memcmp(added, text, *length) == 0) {
            return vocab->added_ids[i];
        }
    }
    return VOCAB_NONE;
}

enum err tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t bytes,
                          const struct text_range *ranges, size_t range_count, int32_t *ids, size_t capacity,
                          void *scratch, size_t scratch_bytes, size_t *count)
{
    struct work work = {
        .vocab = &tokenizer->vocab,
        .piece = scratch,
        .piece_capacity = piece_capacity_for(scratch_bytes),
        .out = {ids, capacity, 0},
    };
    size_t done = 0; /* of text */

    assert((uintptr_t)scratch % ALIGNMENT == 0);
    *count = 0;
    if (bytes > work.piece_capacity) {
        return ERR_TOO_DEEP;
    }
    if (utf8_valid_bytes(text, bytes) != bytes) {
        return ERR_BAD_FIELD;
    }
    assert(bytes == 0 || text != NULL);
    work.rest = (char *)scratch + aligned(work.piece_capacity);
    work.rest_bytes = scratch_bytes - aligned(work.piece_capacity);
    for (size_t r = 0; r < range_count; r++) {
        assert(ranges[r].begin <= ranges[r].end && ranges[r].end <= bytes);
        assert(r == 0 || ranges[r].begin >= ranges[r - 1].end);
        for (size_t at = ranges[r].begin; at < ranges[r].end; at++) {
            size_t length = 0;
            if (!tokenizer->begins_added[(unsigned char)text[at]]) {
                continue;
            }
            int32_t id = added_at(&tokenizer->vocab, text + at, ranges[r].end - at, &length);
            if (id == VOCAB_NONE) {
                continue;
            }
            if (!encode_piece(&work, text + done, at - done)) {
                return ERR_TOO_DEEP;
            }
            bpe_put(&work.out, id);
            done = at + length;
            at = done - 1;
        }
    }
    if (!encode_piece(&work, text + done, bytes - done)) {
        return ERR_TOO_DEEP;
    }
    *count = work.out.count;
    return *count > capacity ? ERR_CONTEXT_EXCEEDED : ERR_OK;
}

const char *tokenizer_token(const struct tokenizer *tokenizer, int32_t id, size_t *bytes)
{
    assert(bytes != NULL);
    return vocab_text(&tokenizer->vocab, id, bytes);
}

bool tokenizer_is_special(const struct tokenizer *tokenizer, int32_t id)
{
    return (vocab_flags(&tokenizer->vocab, id) & VOCAB_SPECIAL) != 0;
}

int32_t tokenizer_find(const struct tokenizer *tokenizer, const char *text)
{
    size_t bytes = strlen(text);
    int32_t id = vocab_find_added(&tokenizer->vocab, text, bytes);
    return id != VOCAB_NONE ? id : vocab_find(&tokenizer->vocab, text, bytes);
}
