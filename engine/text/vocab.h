/* vocab: the tokens of a byte-level vocabulary and the merges between them, in memory of fixed size. */
#ifndef ENGINE_TEXT_VOCAB_H
#define ENGINE_TEXT_VOCAB_H

#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VOCAB_NONE = -1 };

enum vocab_flag {
    VOCAB_PRESENT = 1, /* the id has text */
    VOCAB_ADDED = 2,   /* an added token: matched in text as a whole, never made by merging */
    VOCAB_SPECIAL = 4, /* added, and left out of decoded text on demand */
    VOCAB_CLOSED = 8,  /* merging its own bytes gives this one token: a word equal to it needs no merging */
};

struct vocab_text {
    uint32_t at, bytes;
};

struct vocab_merge {
    int32_t left, right; /* ids; left VOCAB_NONE: the slot is free */
    uint32_t rank;       /* lower ranks merge first */
    int32_t id;          /* of the result */
};

struct vocab {
    uint32_t id_limit; /* ids are below; those without text are not PRESENT */
    uint32_t merge_count;
    struct vocab_merge *merges; /* open-addressed: [slot_count] */
    int32_t *ids_by_text;       /* open-addressed: [slot_count], ids or VOCAB_NONE; not the added ones */
    struct vocab_text *texts;   /* [id_limit] */
    uint8_t *flags;             /* [id_limit] of enum vocab_flag */
    char *text;                 /* [text_capacity] */
    size_t text_capacity, text_bytes;
    uint32_t slot_count; /* a power of two, more than 4/3 of id_limit */
    uint32_t added_count;
    int32_t added_ids[ADDED_TOKENS_MAX]; /* longest text first */
    int32_t byte_ids[256];               /* the token of each single byte, or VOCAB_NONE */
};

/* Bytes that hold any vocabulary of at most `id_limit` ids, as many merges, and a mean of VOCAB_TEXT_BYTES_MEAN bytes a
 * token. Known from the number alone, so that memory can be planned before a file is read. */
size_t vocab_memory_bytes(uint32_t id_limit);

/* Lays an empty vocabulary over the caller's memory, of vocab_memory_bytes(id_limit), aligned to 8. */
void vocab_open(struct vocab *vocab, uint32_t id_limit, void *memory, size_t bytes);

/* Start-up: each returns NULL, or what is wrong with the row. */
const char *vocab_add_token(struct vocab *vocab, int64_t id, const char *text, size_t bytes);
const char *vocab_add_special(struct vocab *vocab, int64_t id, const char *text, size_t bytes, bool is_special);
const char *vocab_add_merge(struct vocab *vocab, int32_t left, int32_t right);

/* The id of a token by its bytes, added ones not considered; or VOCAB_NONE. */
int32_t vocab_find(const struct vocab *vocab, const char *text, size_t bytes);

/* The id of the added token with exactly this text, or VOCAB_NONE. */
int32_t vocab_find_added(const struct vocab *vocab, const char *text, size_t bytes);

/* The merge of two neighbours, or NULL. */
const struct vocab_merge *vocab_merge_of(const struct vocab *vocab, int32_t left, int32_t right);

/* A token's bytes; none for an id without text, in range or not. */
const char *vocab_text(const struct vocab *vocab, int32_t id, size_t *bytes);

/* Flags of an id; 0 for one without text, in range or not. */
unsigned int vocab_flags(const struct vocab *vocab, int32_t id);

#endif
