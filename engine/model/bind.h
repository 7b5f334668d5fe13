/* bind: the bijection between an architecture's tensor table and the files of a checkpoint. */
#ifndef MODEL_BIND_H
#define MODEL_BIND_H

#include "engine/io/safetensors.h"
#include "engine/model/checkpoint.h"
#include "engine/model/model.h"

enum { TENSOR_NAME_BYTES_MAX = 128 };

enum bind_kind {
    BIND_WEIGHT,  /* a tensor of the table */
    BIND_IGNORED, /* one that the reference ignores, too */
    BIND_UNKNOWN,
};

/* Which tensor of the table. Tensors are numbered in the table's order, a repeated row's one after another. */
struct bind_place {
    const struct tensor_row *row;
    uint32_t layer; /* 0 for rows that come once */
    uint32_t index; /* 0 .. tensor count - 1 */
};

/* Tensors that the table asks for, and their bytes in bf16 files. */
void bind_measure(const struct checkpoint *checkpoint, uint32_t *tensor_count, uint64_t *tensor_bytes);

/* Walks all tensors in order: start with place->row == NULL; false behind the last. */
bool bind_next(const struct checkpoint *checkpoint, struct bind_place *place);

/* Looks a tensor name up; the architecture's other spellings of a prefix count as the same. */
enum bind_kind bind_find(const struct checkpoint *checkpoint, const char *name, size_t name_bytes,
                         struct bind_place *place);

/* The published name of a tensor, for messages. */
void bind_name(const struct bind_place *place, char name[TENSOR_NAME_BYTES_MAX]);

/* Refuses to start (code 4), naming file, tensor and axis, unless the entry has the table's type, rank and shape. */
void bind_check(const struct checkpoint *checkpoint, const struct bind_place *place, const struct tensor_entry *entry,
                const char *file);

/* Rows of a tensor, and the columns that all its other axes make together; 1 for a vector. */
uint32_t bind_out(const struct checkpoint *checkpoint, const struct tensor_row *row);
uint32_t bind_in(const struct checkpoint *checkpoint, const struct tensor_row *row);

/* How often a row comes in this checkpoint: 0 for a tied head. */
uint32_t bind_repeat(const struct checkpoint *checkpoint, const struct tensor_row *row);

#endif
