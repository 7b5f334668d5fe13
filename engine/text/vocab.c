/* vocab: the tokens of a byte-level vocabulary and the merges between them, in memory of fixed size.
 *
 * Always true between calls: a PRESENT id's bytes lie in text[0 .. text_bytes) and never move; every PRESENT id that is
 * not ADDED is found by its bytes; both tables keep a free slot, so probing ends.
 */
#include "engine/text/vocab.h"

#include <assert.h>
#include <string.h>

enum {
    ALIGNMENT = 8,
    SLOTS_MIN = 1024,
};

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint32_t slots_for(uint32_t id_limit)
{
    uint32_t slots = SLOTS_MIN;
    while (slots / 4 * 3 <= id_limit) {
        slots *= 2;
    }
    return slots;
}

static size_t text_capacity_for(uint32_t id_limit)
{
    return (size_t)id_limit * VOCAB_TEXT_BYTES_MEAN + (size_t)ADDED_TOKENS_MAX * VOCAB_TEXT_BYTES_MEAN;
}

size_t vocab_memory_bytes(uint32_t id_limit)
{
    size_t slots = slots_for(id_limit);
    return aligned(slots * sizeof(struct vocab_merge)) + aligned(slots * sizeof(int32_t)) +
           aligned(id_limit * sizeof(struct vocab_text)) + aligned(id_limit) + aligned(text_capacity_for(id_limit));
}

void vocab_open(struct vocab *vocab, uint32_t id_limit, void *memory, size_t bytes)
{
    unsigned char *at = memory;
    assert(id_limit > 0 && id_limit <= INT32_MAX / 2);
    assert((uintptr_t)memory % ALIGNMENT == 0 && bytes >= vocab_memory_bytes(id_limit));

    *vocab = (struct vocab){
        .id_limit = id_limit,
        .slot_count = slots_for(id_limit),
        .text_capacity = text_capacity_for(id_limit),
    };
    vocab->merges = (void *)at;
    at += aligned(vocab->slot_count * sizeof(struct vocab_merge));
    vocab->ids_by_text = (void *)at;
    at += aligned(vocab->slot_count * sizeof(int32_t));
    vocab->texts = (void *)at;
    at += aligned(id_limit * sizeof(struct vocab_text));
    vocab->flags = at;
    at += aligned(id_limit);
    vocab->text = (char *)at;
    assert(at + vocab->text_capacity <= (unsigned char *)memory + bytes);

    for (uint32_t i = 0; i < vocab->slot_count; i++) {
        vocab->merges[i] = (struct vocab_merge){VOCAB_NONE, VOCAB_NONE, 0, VOCAB_NONE};
        vocab->ids_by_text[i] = VOCAB_NONE;
    }
    memset(vocab->texts, 0, id_limit * sizeof(struct vocab_text));
    memset(vocab->flags, 0, id_limit);
    memset(vocab->text, 0, vocab->text_capacity); /* touched before ready, whatever the files fill */
    for (int i = 0; i < 256; i++) {
        vocab->byte_ids[i] = VOCAB_NONE;
    }
}

static uint32_t mix(uint64_t key)
{
    key *= 0x9e3779b97f4a7c15U;
    return (uint32_t)(key >> 32) ^ (uint32_t)(key >> 17);
}

static uint32_t text_hash(const char *text, size_t bytes)
{
    uint64_t hash = bytes;
    for (; bytes >= sizeof hash; bytes -= sizeof hash, text += sizeof hash) {
        uint64_t word;
        memcpy(&word, text, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 29;
    }
    uint64_t last = 0;
    memcpy(&last, text, bytes);
    return mix(hash ^ last);
}

static bool is_text_of(const struct vocab *vocab, int32_t id, const char *text, size_t bytes)
{
    const struct vocab_text *entry = &vocab->texts[id];
    return entry->bytes == bytes && memcmp(vocab->text + entry->at, text, bytes) == 0;
}

/* The slot that holds `text`, or the free one where it belongs. */
static int32_t *text_slot(const struct vocab *vocab, const char *text, size_t bytes)
{
    uint32_t mask = vocab->slot_count - 1;
    uint32_t slot = text_hash(text, bytes) & mask;
    while (vocab->ids_by_text[slot] != VOCAB_NONE && !is_text_of(vocab, vocab->ids_by_text[slot], text, bytes)) {
        slot = (slot + 1) & mask;
    }
    return &vocab->ids_by_text[slot];
}

static struct vocab_merge *merge_slot(const struct vocab *vocab, int32_t left, int32_t right)
{
    uint32_t mask = vocab->slot_count - 1;
    uint32_t slot = mix((uint64_t)(uint32_t)left << 32 | (uint32_t)right) & mask;
    while (vocab->merges[slot].left != VOCAB_NONE &&
           (vocab->merges[slot].left != left || vocab->merges[slot].right != right)) {
        slot = (slot + 1) & mask;
    }
    return &vocab->merges[slot];
}

static const char *add_text(struct vocab *vocab, int64_t id, const char *text, size_t bytes, uint8_t flags)
{
    if (id < 0 || id >= (int64_t)vocab->id_limit) {
        return "id beyond the model's vocab_size";
    }
    if (bytes == 0 || bytes > TOKEN_BYTES_MAX) {
        return "empty token, or longer than the limit";
    }
    if (vocab->flags[id] != 0) {
        return "two tokens with one id";
    }
    if (bytes > vocab->text_capacity - vocab->text_bytes) {
        return "tokens longer than planned on the average";
    }
    memcpy(vocab->text + vocab->text_bytes, text, bytes);
    vocab->texts[id] = (struct vocab_text){(uint32_t)vocab->text_bytes, (uint32_t)bytes};
    vocab->text_bytes += bytes;
    vocab->flags[id] = flags;
    return NULL;
}

const char *vocab_add_token(struct vocab *vocab, int64_t id, const char *text, size_t bytes)
{
    int32_t *slot = text_slot(vocab, text, bytes);
    if (*slot != VOCAB_NONE) {
        return "two ids for one token";
    }
    const char *wrong = add_text(vocab, id, text, bytes, VOCAB_PRESENT);
    if (wrong == NULL) {
        *slot = (int32_t)id;
        if (bytes == 1) {
            vocab->byte_ids[(unsigned char)text[0]] = (int32_t)id;
        }
    }
    return wrong;
}

const char *vocab_add_special(struct vocab *vocab, int64_t id, const char *text, size_t bytes, bool is_special)
{
    uint8_t flags = (uint8_t)(VOCAB_PRESENT | VOCAB_ADDED | (is_special ? VOCAB_SPECIAL : 0));
    if (id < 0 || id >= (int64_t)vocab->id_limit) {
        return "id beyond the model's vocab_size";
    }
    if (vocab_find_added(vocab, text, bytes) != VOCAB_NONE) {
        return vocab_find_added(vocab, text, bytes) == id ? NULL : "two ids for one added token";
    }
    if (vocab->added_count == ADDED_TOKENS_MAX) {
        return "too many added tokens";
    }
    bool is_known = vocab_flags(vocab, (int32_t)id) != 0 && is_text_of(vocab, (int32_t)id, text, bytes);
    const char *wrong = is_known ? NULL : add_text(vocab, id, text, bytes, flags);
    if (wrong != NULL) {
        return wrong;
    }
    vocab->flags[id] |= flags; /* a token of the vocabulary may be an added one too */
    uint32_t place = vocab->added_count++;
    for (; place > 0 && vocab->texts[vocab->added_ids[place - 1]].bytes < bytes; place--) {
        vocab->added_ids[place] = vocab->added_ids[place - 1];
    }
    vocab->added_ids[place] = (int32_t)id;
    return NULL;
}

const char *vocab_add_merge(struct vocab *vocab, int32_t left, int32_t right)
{
    char text[2 * TOKEN_BYTES_MAX];
    size_t left_bytes;
    size_t right_bytes;
    const char *left_text = vocab_text(vocab, left, &left_bytes);
    const char *right_text = vocab_text(vocab, right, &right_bytes);

    if (left_bytes == 0 || right_bytes == 0) {
        return "a merge of a token that is not in the vocabulary";
    }
    memcpy(text, left_text, left_bytes);
    memcpy(text + left_bytes, right_text, right_bytes);
    int32_t id = vocab_find(vocab, text, left_bytes + right_bytes);
    if (id == VOCAB_NONE) {
        return "a merge into a token that is not in the vocabulary";
    }
    if (vocab->merge_count == vocab->id_limit) {
        return "more merges than tokens";
    }
    /* A pair that comes twice keeps its last rank, as in the reference. */
    *merge_slot(vocab, left, right) = (struct vocab_merge){left, right, vocab->merge_count, id};
    vocab->merge_count++;
    return NULL;
}

int32_t vocab_find(const struct vocab *vocab, const char *text, size_t bytes)
{
    assert(text != NULL);
    return *text_slot(vocab, text, bytes);
}

int32_t vocab_find_added(const struct vocab *vocab, const char *text, size_t bytes)
{
    for (uint32_t i = 0; i < vocab->added_count; i++) {
        if (is_text_of(vocab, vocab->added_ids[i], text, bytes)) {
            return vocab->added_ids[i];
        }
    }
    return VOCAB_NONE;
}

const struct vocab_merge *vocab_merge_of(const struct vocab *vocab, int32_t left, int32_t right)
{
    assert(left >= 0 && right >= 0);
    const struct vocab_merge *merge = merge_slot(vocab, left, right);
    return merge->left == VOCAB_NONE ? NULL : merge;
}

const char *vocab_text(const struct vocab *vocab, int32_t id, size_t *bytes)
{
    if (vocab_flags(vocab, id) == 0) {
        *bytes = 0;
        return "";
    }
    assert(vocab->texts[id].at + vocab->texts[id].bytes <= vocab->text_bytes);
    *bytes = vocab->texts[id].bytes;
    return vocab->text + vocab->texts[id].at;
}

unsigned int vocab_flags(const struct vocab *vocab, int32_t id)
{
    return id < 0 || (uint32_t)id >= vocab->id_limit ? 0 : vocab->flags[id];
}
