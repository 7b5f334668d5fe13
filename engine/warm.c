/* warm: runs every op once at each shape class.
 *
 * Classes of a text step: one row, a row for each running request, a chunk of a prompt behind other tokens. Of the
 * tower: one picture with whole and with cut windows. Large shapes are the same code over more tiles, so small ones
 * stand for them.
 */
#include "engine/warm.h"

#include "pools/pools.h"

#include <assert.h>
#include <string.h>

enum { ROWS_MAX = 64, PAGES_MAX = 64, GRID_EDGE = 10 };

/* One sequence of `row_count` rows that begin at `first`, or as many sequences of one first row; logits of each one's
 * last. */
static void warm_step(struct model *model, bool is_one, uint32_t row_count, uint32_t first)
{
    static struct text_row rows[ROWS_MAX];
    static struct sequence_pages sequences[ROWS_MAX];
    static uint32_t logit_rows[ROWS_MAX], pages[PAGES_MAX];
    slab_handle logits = pools_get(POOL_LOGITS);
    uint32_t sequence_count = is_one ? 1 : row_count;

    assert(slab_is_some(logits));
    assert(row_count > 0 && row_count <= ROWS_MAX);
    for (uint32_t i = 0; i < PAGES_MAX; i++) {
        pages[i] = i;
    }
    for (uint32_t i = 0; i < row_count; i++) {
        uint32_t index = is_one ? first + i : 0;
        int32_t at = (int32_t)index;
        rows[i] = (struct text_row){.token = 0, .position = {at, at, at}, .sequence = is_one ? 0 : i, .index = index};
    }
    for (uint32_t s = 0; s < sequence_count; s++) {
        uint32_t page_count = is_one ? (first + row_count - 1) / KV_PAGE_TOKENS + 1 : 1;
        sequences[s] = (struct sequence_pages){.pages = &pages[s], .page_count = page_count};
        logit_rows[s] = is_one ? row_count - 1 : s;
    }
    struct text_step step = {.rows = rows,
                             .row_count = row_count,
                             .sequences = sequences,
                             .sequence_count = sequence_count,
                             .logit_rows = logit_rows,
                             .logit_row_count = sequence_count};
    model_text_step(model, &step, pools_at(POOL_LOGITS, logits));
    pools_put(POOL_LOGITS, logits);
}

static void warm_tower(struct model *model, const struct checkpoint *checkpoint, const struct pool_limits *limits)
{
    static void *pages[(GRID_EDGE * GRID_EDGE + MM_PAGE_TOKENS - 1) / MM_PAGE_TOKENS];
    slab_handle pixels = pools_get(POOL_PIXELS);
    uint32_t merge = checkpoint->image.merge, grid_h = GRID_EDGE / merge * merge, grid_w = grid_h;

    assert(slab_is_some(pixels));
    while (grid_h * grid_w > limits->picture_tokens * merge * merge) {
        grid_h = grid_w = grid_h - merge; /* the least picture has one merged token */
    }
    for (uint32_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        uint32_t page = i < pools_capacity(POOL_MM_PAGE) ? i : 0;
        pages[i] = (unsigned char *)pools_base(POOL_MM_PAGE) + page * pools_stride_bytes(POOL_MM_PAGE);
    }
    memset(pools_at(POOL_PIXELS, pixels), 0, pools_element_bytes(POOL_PIXELS));
    model_vision_begin(model, pools_at(POOL_PIXELS, pixels), grid_h, grid_w, pages);
    while (!model_vision_advance(model)) {
    }
    pools_put(POOL_PIXELS, pixels);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void warm_model(struct model *model, const struct checkpoint *checkpoint, const struct pool_limits *limits)
{
    uint32_t page_count = least(pools_capacity(POOL_KV_PAGE), PAGES_MAX);
    uint32_t running = least(least(limits->running_requests, ROWS_MAX), page_count);
    uint32_t chunk = least(least(limits->chunk_tokens, ROWS_MAX), (page_count - 1) * KV_PAGE_TOKENS);

    assert(page_count > 1); /* one full context and one */
    warm_step(model, true, chunk, 0);
    warm_step(model, true, 1, chunk);
    warm_step(model, false, running, 0);
    if (limits->picture_tokens > 0) {
        warm_tower(model, checkpoint, limits);
    }
}
