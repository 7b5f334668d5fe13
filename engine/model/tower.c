/* tower: a picture goes through the vision tower, one unit (block, phase, tile of rows) at a time.
 *
 * Always true between units: every patch of the picture has passed the same phase, or the tiles before `tile` have
 * passed one more; so text steps may run in between, and the tiles' order does not matter to any bit.
 */
#include "engine/model/run.h"
#include "engine/model/run_state.h"
#include "engine/model/window.h"

#include <assert.h>
#include <string.h>

uint64_t tower_store_bytes(const struct model *model)
{
    uint64_t pages = ((uint64_t)model->dims[PATCHES] + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;

    return pages == 0 ? 0 : pages * model->vision.store.page_stride_bytes;
}

void tower_open(struct model *model)
{
    const struct image_rules *image = &model->checkpoint->image;
    uint32_t quarter = model->dims[V_HALF_DIM] / 2;
    unsigned char *memory = model->memory.act_vision;

    /* Rows drive the first half of the frequencies, columns the second half, which repeats them. */
    for (uint32_t j = 0; j < quarter; j++) {
        model->vision_axis[j] = 1;
        model->vision_axis[quarter + j] = 2;
        model->vision_frequency[quarter + j] = model->vision_frequency[j];
    }
    for (uint32_t channel = 0; channel < 3; channel++) {
        for (uint32_t value = 0; value < 256; value++) {
            float scaled = (float)(value * (1.0 / 255));
            model->normalize[channel][value] = (scaled - image->mean[channel]) / image->std[channel];
        }
    }
    model->vision.memory = memory;
    model->vision.store.data = memory + model->plan.tile_bytes + model->plan.state_bytes;
}

static uint32_t tile_count(const struct model *model, uint32_t patch_count)
{
    return (patch_count + model->dims[TILE_ROWS] - 1) / model->dims[TILE_ROWS];
}

uint32_t model_vision_units(const struct model *model, uint32_t grid_h, uint32_t grid_w)
{
    assert(model->dims[PATCHES] > 0);
    return tile_count(model, grid_h * grid_w) * (2 + 2 * model->dims[V_BLOCKS]);
}

void model_vision_begin(struct model *model, const uint8_t *rgb, uint32_t grid_h, uint32_t grid_w,
                        void *const *mm_pages)
{
    uint32_t merge = model->dims[V_MERGE], side = model->dims[V_WINDOW] / merge / model->dims[V_PATCH];
    struct vision_work *work = &model->work;

    assert(work->phase == VISION_IDLE);
    assert(rgb != NULL && mm_pages != NULL);
    assert(grid_h > 0 && grid_w > 0 && grid_h % merge == 0 && grid_w % merge == 0);
    assert((uint64_t)grid_h * grid_w <= model->dims[PATCHES]);
    *work = (struct vision_work){
        .phase = VISION_PATCH,
        .tile_count = tile_count(model, grid_h * grid_w),
        .patch_count = grid_h * grid_w,
        .window_count = window_count(grid_h / merge, grid_w / merge, side),
        .order = model->tables.order,
        .bounds = model->tables.bounds,
        .sequence = {NULL, (grid_h * grid_w + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS},
    };
    window_order(grid_h / merge, grid_w / merge, side, work->order, work->bounds);
    model->vision.rgb = rgb;
    model->vision.order = work->order;
    model->vision.grid_h = grid_h;
    model->vision.grid_w = grid_w;
    model->vision.pages = mm_pages;
}

void model_vision_drop(struct model *model)
{
    model->work.phase = VISION_IDLE;
}

static bool is_full_block(const struct model *model)
{
    return (model->checkpoint->full_blocks >> model->work.block & 1) != 0;
}

uint32_t model_vision_kind(const struct model *model)
{
    const struct vision_work *work = &model->work;

    assert(work->phase != VISION_IDLE);
    return work->phase == VISION_REST && is_full_block(model) ? VISION_KINDS - 1 : work->phase - VISION_PATCH;
}

/* The window that place `group` lies in: bisection over the bounds. */
static uint32_t find_window(const struct vision_work *work, uint32_t group)
{
    uint32_t low = 0, high = work->window_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (work->bounds[middle] <= group) {
            low = middle;
        } else {
            high = middle;
        }
    }
    assert(work->bounds[low] <= group && group < work->bounds[low + 1]);
    return low;
}

/* Positions, slots and key ranges of the tile's patches. */
static void fill_tile(struct model *model, uint32_t first, uint32_t count)
{
    const struct vision_work *work = &model->work;
    struct step_tables *tables = &model->tables;
    uint32_t group = model->dims[V_GROUP], merge = model->dims[V_MERGE], width = model->vision.grid_w / merge;
    bool is_full = is_full_block(model);
    uint32_t window = find_window(work, first / group);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = first + i, token = work->order[place / group], inside = place % group;
        while (place / group >= work->bounds[window + 1]) {
            window++;
        }
        tables->positions[i][0] = 0;
        tables->positions[i][1] = (int32_t)(token / width * merge + inside / merge);
        tables->positions[i][2] = (int32_t)(token % width * merge + inside % merge);
        tables->places[i] = (struct kv_row){
            .sequence = 0,
            .index = place,
            .key_first = is_full ? 0 : work->bounds[window] * group,
            .key_end = is_full ? work->patch_count : work->bounds[window + 1] * group,
        };
    }
    model->vision.positions = (const int32_t(*)[3])tables->positions;
    model->vision.places = tables->places;
    model->vision.sequences = &work->sequence;
}

static const struct step_row *phase_steps(const struct arch *arch, enum vision_phase phase)
{
    switch (phase) {
    case VISION_PATCH:
        return arch->patch_steps;
    case VISION_KEYS:
        return arch->keys_steps;
    case VISION_REST:
        return arch->rest_steps;
    case VISION_MERGE:
        return arch->merge_steps;
    case VISION_IDLE:
        break;
    }
    assert(false && "no picture is being encoded");
    return NULL;
}

/* The phase behind a finished one. */
static void step_phase(struct model *model)
{
    struct vision_work *work = &model->work;
    bool is_last_block = work->block + 1 == model->dims[V_BLOCKS];

    switch (work->phase) {
    case VISION_PATCH:
        work->phase = VISION_KEYS;
        return;
    case VISION_KEYS:
        work->phase = VISION_REST;
        return;
    case VISION_REST:
        work->phase = is_last_block ? VISION_MERGE : VISION_KEYS;
        work->block += is_last_block ? 0 : 1;
        return;
    case VISION_MERGE:
    case VISION_IDLE:
        work->phase = VISION_IDLE;
        return;
    }
}

bool model_vision_advance(struct model *model)
{
    struct vision_work *work = &model->work;
    struct step_frame *frame = &model->vision;
    uint32_t first = work->tile * model->dims[TILE_ROWS];
    uint32_t left = work->patch_count - first;
    uint32_t count = left < model->dims[TILE_ROWS] ? left : model->dims[TILE_ROWS];

    assert(work->phase != VISION_IDLE && work->tile < work->tile_count);
    frame->first_patch = first;
    frame->rows[PATCHES] = frame->rows[TILE_ROWS] = count;
    frame->rows[TILE_GROUPS] = count / model->dims[V_GROUP];
    fill_tile(model, first, count);
    run_steps(model, frame, phase_steps(frame->arch, work->phase), work->block, NULL);
    if (++work->tile == work->tile_count) {
        work->tile = 0;
        step_phase(model);
    }
    return work->phase == VISION_IDLE;
}

size_t model_feature_bytes(const struct model *model)
{
    return (size_t)model->dims[HIDDEN] * kernel_type_bytes(model->act);
}

const void *model_feature(const struct model *model, void *const *mm_pages, uint32_t index)
{
    const unsigned char *page = mm_pages[index / MM_PAGE_TOKENS];

    assert(page != NULL);
    return page + (index % MM_PAGE_TOKENS) * model_feature_bytes(model);
}
