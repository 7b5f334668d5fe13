/* bpe: merges the bytes of one word into tokens.
 *
 * Nothing is kept between calls. A short word is an array that is searched for its best pair each time. A long one is a
 * linked list of symbols, and a heap of those that have a merge with their right neighbour: one place in the heap for
 * each symbol, known to it, so that the heap never holds a stale pair and never grows beyond the word.
 */
#include "engine/text/bpe.h"

#include <assert.h>
#include <string.h>

enum { NO_RANK = -1 };

void bpe_put(struct bpe_out *out, int32_t id)
{
    if (out->count < out->capacity) {
        out->ids[out->count] = id;
    }
    out->count++;
}

static const struct vocab_merge *NO_MERGE = &(const struct vocab_merge){VOCAB_NONE, VOCAB_NONE, UINT32_MAX, VOCAB_NONE};

static const struct vocab_merge *merge_of(const struct vocab *vocab, int32_t left, int32_t right)
{
    const struct vocab_merge *merge = vocab_merge_of(vocab, left, right);
    return merge == NULL ? NO_MERGE : merge;
}

static void short_word(const struct vocab *vocab, const char *word, size_t bytes, struct bpe_out *out)
{
    int32_t ids[BPE_SHORT_BYTES_MAX];
    const struct vocab_merge *merges[BPE_SHORT_BYTES_MAX]; /* of each with its right neighbour */
    size_t count = bytes;

    for (size_t i = 0; i < count; i++) {
        ids[i] = vocab->byte_ids[(unsigned char)word[i]];
    }
    for (size_t i = 0; i + 1 < count; i++) {
        merges[i] = merge_of(vocab, ids[i], ids[i + 1]);
    }
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++) {
            best = merges[i]->rank < merges[best]->rank ? i : best;
        }
        if (merges[best] == NO_MERGE) {
            break;
        }
        ids[best] = merges[best]->id;
        count--;
        memmove(ids + best + 1, ids + best + 2, (count - best - 1) * sizeof ids[0]);
        memmove(merges + best, merges + best + 1, (count - best - 1) * sizeof merges[0]);
        if (best + 1 < count) {
            merges[best] = merge_of(vocab, ids[best], ids[best + 1]);
        }
        if (best > 0) {
            merges[best - 1] = merge_of(vocab, ids[best - 1], ids[best]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        bpe_put(out, ids[i]);
    }
}

struct symbol {
    int32_t id;
    int32_t previous, next; /* symbols; -1: none */
    int32_t rank;           /* of the merge with the next one; NO_RANK */
    int32_t place;          /* in the heap; -1: not there */
};

struct long_word {
    const struct vocab *vocab;
    struct symbol *symbols; /* [bytes of the word] */
    int32_t *heap;          /* symbols that have a rank; the least (rank, place in the word) on top */
    int32_t heap_count;
};

size_t bpe_scratch_bytes(size_t word_bytes)
{
    return word_bytes <= BPE_SHORT_BYTES_MAX ? 0 : word_bytes * (sizeof(struct symbol) + sizeof(int32_t));
}

static bool is_before(const struct long_word *word, int32_t a, int32_t b)
{
    const struct symbol *symbols = word->symbols;
    return symbols[a].rank != symbols[b].rank ? symbols[a].rank < symbols[b].rank : a < b;
}

static void put_at(struct long_word *word, int32_t place, int32_t symbol)
{
    word->heap[place] = symbol;
    word->symbols[symbol].place = place;
}

/* Moves `symbol`, which may stand at `place`, up or down to where it belongs. */
static void settle(struct long_word *word, int32_t place, int32_t symbol)
{
    assert(place >= 0 && place < word->heap_count);
    while (place > 0 && is_before(word, symbol, word->heap[(place - 1) / 2])) {
        put_at(word, place, word->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (;;) {
        int64_t child = 2 * (int64_t)place + 1;
        if (child >= word->heap_count) {
            break;
        }
        if (child + 1 < word->heap_count && is_before(word, word->heap[child + 1], word->heap[child])) {
            child++;
        }
        if (!is_before(word, word->heap[child], symbol)) {
            break;
        }
        put_at(word, place, word->heap[child]);
        place = (int32_t)child;
    }
    put_at(word, place, symbol);
}

/* Looks the symbol's merge up again, and puts it into the heap, moves it there, or takes it out. */
static void rank_again(struct long_word *word, int32_t symbol)
{
    struct symbol *s = &word->symbols[symbol];
    const struct vocab_merge *merge =
        s->next < 0 ? NULL : vocab_merge_of(word->vocab, s->id, word->symbols[s->next].id);

    s->rank = merge == NULL ? NO_RANK : (int32_t)merge->rank;
    if (s->rank != NO_RANK) {
        settle(word, s->place < 0 ? word->heap_count++ : s->place, symbol);
    } else if (s->place >= 0) {
        int32_t hole = s->place;
        int32_t last = word->heap[--word->heap_count];
        s->place = -1;
        if (last != symbol) {
            settle(word, hole, last);
        }
    }
}

static void long_word(struct long_word *word, const char *text, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        word->symbols[i] = (struct symbol){
            .id = word->vocab->byte_ids[(unsigned char)text[i]],
            .previous = i - 1,
            .next = i + 1 < count ? i + 1 : -1,
            .rank = NO_RANK,
            .place = -1,
        };
    }
    for (int32_t i = 0; i < count; i++) {
        rank_again(word, i);
    }
    while (word->heap_count > 0) {
        int32_t left = word->heap[0];
        struct symbol *s = &word->symbols[left];
        struct symbol *gone = &word->symbols[s->next];
        const struct vocab_merge *merge = vocab_merge_of(word->vocab, s->id, gone->id);

        assert(merge != NULL && gone->previous == left);
        s->id = merge->id;
        s->next = gone->next;
        gone->next = -1;
        rank_again(word, (int32_t)(gone - word->symbols)); /* without a neighbour it leaves the heap */
        if (s->next >= 0) {
            word->symbols[s->next].previous = left;
        }
        rank_again(word, left);
        if (s->previous >= 0) {
            rank_again(word, s->previous);
        }
    }
}

void bpe_word(const struct vocab *vocab, const char *word, size_t bytes, void *scratch, size_t scratch_bytes,
              struct bpe_out *out)
{
    assert(bytes > 0 && bytes <= INT32_MAX);
    if (bytes <= BPE_SHORT_BYTES_MAX) {
        short_word(vocab, word, bytes, out);
        return;
    }
    assert((uintptr_t)scratch % sizeof(int32_t) == 0 && scratch_bytes >= bpe_scratch_bytes(bytes));
    struct long_word list = {.vocab = vocab, .symbols = scratch};
    list.heap = (int32_t *)(void *)(list.symbols + bytes);
    long_word(&list, word, (int32_t)bytes);
    for (int32_t i = 0; i >= 0; i = list.symbols[i].next) {
        bpe_put(out, list.symbols[i].id);
    }
}
