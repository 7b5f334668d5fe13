/* batch: one step's rows, from the scheduler's shares to the arrays that the model reads. */
#ifndef ENGINE_BATCH_H
#define ENGINE_BATCH_H

#include "engine/model/run.h"
#include "engine/sched.h"

struct batch {
    uint32_t row_max, share_max;
    uint32_t merge;                   /* patches: edge of a merged token */
    struct text_row *rows;            /* [row_max] */
    struct sequence_pages *sequences; /* [share_max] */
    uint32_t *logit_rows;             /* [share_max] */
    uint32_t *logit_slots;            /* [share_max]: whose logits they are */
    struct sched_share *shares;       /* [share_max] */
    int32_t (*positions)[3];          /* [row_max] */
    uint32_t share_count, prefill_shares, prefill_rows;
    struct text_step step;
};

/* Bytes of memory for batch_open; a multiple of 64. */
uint64_t batch_bytes(uint32_t row_max, uint32_t share_max);

void batch_open(struct batch *batch, uint32_t row_max, uint32_t share_max, uint32_t merge, void *memory);

/* Fills the step from batch->shares[0 .. share_count-1]. */
void batch_fill(struct batch *batch, const struct sched *sched, const struct model *model, uint32_t share_count);

#endif
