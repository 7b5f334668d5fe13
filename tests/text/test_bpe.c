/* test_bpe: the array, the heap and a plain search for the lowest rank give the same tokens on any word. */
#include "engine/text/bpe.h"

#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

enum {
    ID_LIMIT = 600,
    WORD_MAX = 400,
};

static struct vocab vocab;
static unsigned int seed = 11;

static unsigned int next_random(unsigned int below)
{
    seed = seed * 1103515245U + 12345U;
    return (seed >> 8) % below;
}

/* All bytes, and random merges over three letters, so that ranks conflict as much as they can. */
static void make_vocabulary(void)
{
    size_t bytes = vocab_memory_bytes(ID_LIMIT);
    vocab_open(&vocab, ID_LIMIT, harness_memory(bytes), bytes);
    int32_t next = 0;
    for (; next < 256; next++) {
        char byte = (char)next;
        CU_ASSERT_PTR_NULL(vocab_add_token(&vocab, next, &byte, 1));
    }
    while (next < ID_LIMIT) {
        int32_t sides[2];
        char text[2 * TOKEN_BYTES_MAX];
        size_t length = 0;
        for (int side = 0; side < 2; side++) {
            size_t part;
            sides[side] = next > 256 && next_random(3) > 0 ? 256 + (int32_t)next_random((unsigned int)next - 256)
                                                           : (int32_t)('a' + next_random(3));
            const char *side_text = vocab_text(&vocab, sides[side], &part);
            memcpy(text + length, side_text, part);
            length += part;
        }
        if (length <= 24 && vocab_find(&vocab, text, length) == VOCAB_NONE) {
            CU_ASSERT_PTR_NULL(vocab_add_token(&vocab, next, text, length));
            next++;
        }
        if (length <= 24 && vocab.merge_count < ID_LIMIT) {
            CU_ASSERT_PTR_NULL(vocab_add_merge(&vocab, sides[0], sides[1]));
        }
    }
    CU_ASSERT(vocab.merge_count > 300);
}

/* The definition: the leftmost pair of the lowest rank, again and again. */
static size_t by_definition(const char *word, size_t bytes, int32_t *ids)
{
    size_t count = bytes;
    for (size_t i = 0; i < bytes; i++) {
        ids[i] = vocab.byte_ids[(unsigned char)word[i]];
    }
    for (;;) {
        const struct vocab_merge *best = NULL;
        size_t place = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            const struct vocab_merge *merge = vocab_merge_of(&vocab, ids[i], ids[i + 1]);
            if (merge != NULL && (best == NULL || merge->rank < best->rank)) {
                best = merge;
                place = i;
            }
        }
        if (best == NULL) {
            return count;
        }
        ids[place] = best->id;
        memmove(ids + place + 1, ids + place + 2, (count - place - 2) * sizeof *ids);
        count--;
    }
}

static void any_word_merges_by_the_definition(void)
{
    for (int round = 0; round < 20000; round++) {
        char word[WORD_MAX];
        int32_t expected[WORD_MAX];
        int32_t ids[WORD_MAX];
        static int32_t scratch[WORD_MAX * 6];
        size_t bytes = 1 + (round % 20 == 0 ? next_random(WORD_MAX - 1) : next_random(2 * BPE_SHORT_BYTES_MAX));
        for (size_t i = 0; i < bytes; i++) {
            word[i] = next_random(40) == 0 ? (char)next_random(256) : (char)('a' + next_random(3));
        }
        struct bpe_out out = {ids, WORD_MAX, 0};
        CU_ASSERT_FATAL(bpe_scratch_bytes(bytes) <= sizeof scratch);
        bpe_word(&vocab, word, bytes, scratch, bpe_scratch_bytes(bytes), &out);
        size_t count = by_definition(word, bytes, expected);
        CU_ASSERT_FATAL(out.count == count && memcmp(ids, expected, count * sizeof *ids) == 0);
    }
}

static void counting_goes_on_beyond_the_capacity(void)
{
    int32_t ids[2] = {0, 77};
    struct bpe_out out = {ids, 1, 0};
    bpe_put(&out, 5);
    bpe_put(&out, 6);
    CU_ASSERT(out.count == 2 && ids[0] == 5 && ids[1] == 77);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(make_vocabulary),
        CASE(any_word_merges_by_the_definition),
        CASE(counting_goes_on_beyond_the_capacity),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "text/bpe", cases, NULL);
}
