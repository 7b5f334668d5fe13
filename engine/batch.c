/* batch: one step's rows, from the scheduler's shares to the arrays that the model reads. */
#include "engine/batch.h"

#include "engine/model/position.h"
#include "pools/pools.h"

#include <assert.h>

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

uint64_t batch_bytes(uint32_t row_max, uint32_t share_max)
{
    const uint64_t rows = row_max, shares = share_max;

    return round_up(rows * sizeof(struct text_row)) + round_up(shares * sizeof(struct sequence_pages)) +
           2 * round_up(shares * sizeof(uint32_t)) + round_up(shares * sizeof(struct sched_share)) +
           round_up(rows * sizeof(int32_t[3]));
}

static void *lay(unsigned char **place, uint64_t bytes)
{
    void *block = *place;

    *place += round_up(bytes);
    return block;
}

void batch_open(struct batch *batch, uint32_t row_max, uint32_t share_max, uint32_t merge, void *memory)
{
    unsigned char *place = memory;

    assert((uintptr_t)memory % 64 == 0);
    *batch = (struct batch){.row_max = row_max, .share_max = share_max, .merge = merge};
    batch->rows = lay(&place, row_max * sizeof(struct text_row));
    batch->sequences = lay(&place, share_max * sizeof(struct sequence_pages));
    batch->logit_rows = lay(&place, share_max * sizeof(uint32_t));
    batch->logit_slots = lay(&place, share_max * sizeof(uint32_t));
    batch->shares = lay(&place, share_max * sizeof(struct sched_share));
    batch->positions = lay(&place, row_max * sizeof(int32_t[3]));
    assert((uint64_t)(place - (unsigned char *)memory) == batch_bytes(row_max, share_max));
}

/* The pictures of a request as the positions see them. */
static uint32_t fill_spans(const struct request *request, uint32_t merge, struct position_span *spans)
{
    for (uint32_t i = 0; i < request->picture_count; i++) {
        const struct picture *picture = &request->pictures[i];
        assert((uint32_t)picture->grid_h * picture->grid_w == picture->token_count * merge * merge);
        spans[i] = (struct position_span){
            .first = picture->first_token, .height = picture->grid_h / merge, .width = picture->grid_w / merge};
    }
    return request->picture_count;
}

/* The feature row of token `index`, or NULL if it is text. `*picture` walks along with ascending indices. */
static const void *find_feature(const struct sched_slot *slot, const struct model *model, uint32_t index,
                                uint32_t *picture)
{
    const struct request *request = slot->request;

    while (*picture < request->picture_count &&
           request->pictures[*picture].first_token + request->pictures[*picture].token_count <= index) {
        (*picture)++;
    }
    if (*picture == request->picture_count || index < request->pictures[*picture].first_token) {
        return NULL;
    }
    assert(*picture - slot->picture < SLOT_PICTURES);
    const struct mm_feature *feature = mm_at(slot->features[*picture - slot->picture]);
    uint32_t row = index - request->pictures[*picture].first_token;
    assert(feature->state == MM_READY && row < feature->token_count);
    void *page = (unsigned char *)pools_base(POOL_MM_PAGE) +
                 feature->pages[row / MM_PAGE_TOKENS] * pools_stride_bytes(POOL_MM_PAGE);
    return model_feature(model, &page, row % MM_PAGE_TOKENS);
}

static void fill_share(struct batch *batch, const struct sched *sched, const struct model *model, uint32_t sequence)
{
    const struct sched_share *share = &batch->shares[sequence];
    const struct sched_slot *slot = &sched->slots[share->slot];
    struct position_span spans[IMAGES_MAX];
    struct text_step *step = &batch->step;
    uint32_t picture = slot->picture;
    uint32_t span_count = fill_spans(slot->request, batch->merge, spans);

    assert(step->row_count + share->count <= batch->row_max);
    position_fill(spans, span_count, share->first, share->count, batch->positions);
    for (uint32_t i = 0; i < share->count; i++) {
        struct text_row *row = &batch->rows[step->row_count++];
        row->token = slot->request->tokens[share->first + i];
        for (int axis = 0; axis < 3; axis++) {
            row->position[axis] = batch->positions[i][axis];
        }
        row->sequence = sequence;
        row->index = share->first + i;
        row->feature = find_feature(slot, model, share->first + i, &picture);
    }
    batch->sequences[sequence] = (struct sequence_pages){.pages = slot->pages, .page_count = slot->page_count};
    if (share->wants_logits) {
        batch->logit_slots[step->logit_row_count] = share->slot;
        batch->logit_rows[step->logit_row_count++] = step->row_count - 1;
    }
    if (slot->state == SLOT_PREFILL) {
        batch->prefill_shares++;
        batch->prefill_rows += share->count;
    }
}

void batch_fill(struct batch *batch, const struct sched *sched, const struct model *model, uint32_t share_count)
{
    assert(share_count <= batch->share_max);
    batch->step = (struct text_step){.rows = batch->rows,
                                     .sequences = batch->sequences,
                                     .sequence_count = share_count,
                                     .logit_rows = batch->logit_rows};
    batch->share_count = share_count;
    batch->prefill_shares = batch->prefill_rows = 0;
    for (uint32_t i = 0; i < share_count; i++) {
        fill_share(batch, sched, model, i);
    }
}
