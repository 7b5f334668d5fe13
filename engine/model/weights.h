/* weights: where each packed weight lies in the WEIGHTS memory, and how it gets there. */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H

#include "engine/model/checkpoint.h"
#include "engine/model/model.h"
#include "engine/model/run.h"

#include <stdint.h>

enum { WEIGHT_SLOTS_MAX = 64 };

/* Weight `slot` of layer n lies at base + at[slot] + n * stride[slot]. All offsets are multiples of 64. */
struct weight_bank {
    const struct checkpoint *checkpoint;
    unsigned char *base;   /* NULL while measuring */
    enum kernel_type type; /* of the matrices */
    uint64_t at[WEIGHT_SLOTS_MAX], stride[WEIGHT_SLOTS_MAX];
    const struct weight_row *row[WEIGHT_SLOTS_MAX]; /* a tied slot has the stand-in's place */
    uint64_t bytes;
};

/* Lays all weights out, one after another. */
void weights_place(struct weight_bank *bank, const struct checkpoint *checkpoint, enum kernel_type type);

/* A matrix of a layer (any layer number for those that come once); data is NULL while measuring. */
struct packed_matrix weights_matrix(const struct weight_bank *bank, uint8_t slot, uint32_t layer);

/* A vector of a layer, or NULL for slot 0; while measuring a pointer that is not to be followed. */
const float *weights_vector(const struct weight_bank *bank, uint8_t slot, uint32_t layer);

/* Bytes of scratch memory for weights_load. */
uint64_t weights_scratch_bytes(const struct checkpoint *checkpoint, uint32_t worker_count);

/* Fills every weight from the folder's files, or with made-up values: uniform in [-1e-3, 1e-3), a function of a
 * tensor's element index alone, so that tensors of one shape are equal. Refuses to start (code 4) as the loader does.
 */
void weights_load(struct weight_bank *bank, enum load_format format, void *scratch, uint64_t scratch_bytes,
                  struct team *team);

#endif
