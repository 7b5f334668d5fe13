/* case_run: runs one case of the fixtures on a model and measures how far everything lies from the reference. */
#ifndef TESTS_MODEL_CASE_RUN_H
#define TESTS_MODEL_CASE_RUN_H

#include "engine/image/picture_file.h"
#include "engine/model/model.h"
#include "engine/model/window.h"
#include "tests/model/golden_case.h"
#include "tests/model/model_rig.h"

#include <math.h>

enum {
    CASE_IDS_MAX = 2048,
    CASE_GREEDY_MAX = 64,
    CASE_PIXELS_MAX = 1 << 20, /* of one resized picture */
};

/* What was measured; errors are NaN where the fixtures have no value. */
struct case_result {
    bool ids_equal, grid_equal, positions_equal, windows_equal, greedy_equal;
    float pixel_max;               /* pixel_values, float32 models only */
    float vision_max, vision_norm; /* largest difference; relative norm of the difference */
    float logit_max, logit_mean;   /* over prompt and step logits */
};

/* Room for one case; large, so static. */
struct case_room {
    struct picture_regions regions;
    uint8_t *rgb;
    int32_t ids[CASE_IDS_MAX];
    int32_t positions[CASE_IDS_MAX][3];
    uint32_t order[CASE_IDS_MAX], bounds[CASE_IDS_MAX + 1];
    struct position_span spans[GOLDEN_PICTURES_MAX];
    const char *folder; /* of the fixtures */
    uint32_t chunk;     /* 0: the whole prompt at once */
};

/* While a picture is encoded: compares the patch rows with pixel_values. */
struct pixel_check {
    const float *expected; /* [patches][width], raster groups; NULL: nothing to compare with */
    const uint32_t *order;
    uint32_t group, width, row; /* row: the next one in the tower's order */
    float max;
};

static inline void case_probe_pixels(void *ctx, int buffer, uint32_t layer, const void *data, uint32_t row_count)
{
    struct pixel_check *check = ctx;
    (void)layer;
    if (buffer != VPIXELS || check->expected == NULL) {
        return;
    }
    for (uint32_t r = 0; r < row_count; r++, check->row++) {
        uint32_t raster = check->order[check->row / check->group] * check->group + check->row % check->group;
        const float *expected = check->expected + (size_t)raster * check->width;
        const float *got = (const float *)data + (size_t)r * check->width;
        for (uint32_t i = 0; i < check->width; i++) {
            check->max = fmaxf(check->max, fabsf(got[i] - expected[i]));
        }
    }
}

static inline void case_open_room(struct case_room *room, const char *folder, const struct image_rules *rules)
{
    if (room->rgb == NULL) {
        room->regions.rgb_bytes = picture_file_rgb_bytes(CASE_PIXELS_MAX);
        room->regions.work_bytes = picture_file_work_bytes(CASE_PIXELS_MAX, rules);
        room->regions.rgb = rig_memory((room->regions.rgb_bytes + 63) / 64 * 64);
        room->regions.work = rig_memory((room->regions.work_bytes + 63) / 64 * 64);
        room->rgb = rig_memory(3 * CASE_PIXELS_MAX);
    }
    room->folder = folder;
}

/* Decodes a picture into room->rgb; false if it is refused. */
static inline bool case_decode(struct case_room *room, const char *path, const struct image_rules *rules,
                               struct image_grid *grid)
{
    char full[512];
    const char *reason = NULL;
    (void)snprintf(full, sizeof full, "%s/%s", room->folder, path);
    struct picture_source source = {.max_source_pixels = CASE_PIXELS_MAX};
    uint64_t bytes = 0;
    void *map = domain_file_map(full, &bytes);
    if (map == NULL) {
        (void)fprintf(stderr, "%s: cannot be read\n", full);
        return false;
    }
    source.file = map;
    source.file_bytes = (size_t)bytes;
    enum err err = picture_file_decode(&source, rules, &room->regions, room->rgb, 3 * CASE_PIXELS_MAX, grid, &reason);
    domain_file_unmap(map, bytes);
    if (err != ERR_OK) {
        (void)fprintf(stderr, "%s: %s\n", full, reason);
    }
    return err == ERR_OK;
}

static inline float case_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Element i of a row of the activation type. */
static inline float case_value(const struct rig *rig, const void *row, uint32_t i)
{
    return rig->limits.dtype == MODEL_F32 ? ((const float *)row)[i] : case_bf16(((const uint16_t *)row)[i]);
}

/* Encodes all pictures of a case and compares grids, windows and pixels. */
static inline bool case_encode(struct rig *rig, const struct golden_arrays *arrays, const struct golden_case *golden,
                               struct case_room *room, struct case_result *result)
{
    uint32_t window_count_golden = 0, bound_count = 0, pixel_count = 0, tokens = 0, windows = 0, patches = 0;
    const int32_t *order = golden_find(arrays, golden->name, "window_index", &window_count_golden);
    const int32_t *bounds = golden_find(arrays, golden->name, "cu_window_seqlens", &bound_count);
    const float *pixels = golden_find(arrays, golden->name, "pixel_values", &pixel_count);
    const uint32_t *dims = rig->checkpoint.dims;
    uint32_t merge = dims[V_MERGE], side = dims[V_WINDOW] / merge / dims[V_PATCH];
    struct pixel_check check = {.group = dims[V_GROUP], .width = dims[V_PATCH_IN], .order = room->order};

    for (uint32_t i = 0; i < golden->picture_count; i++) {
        const struct golden_picture *picture = &golden->pictures[i];
        struct image_grid grid;
        if (!case_decode(room, picture->path, &rig->checkpoint.image, &grid)) {
            return false;
        }
        uint32_t height = grid.grid_h / merge, width = grid.grid_w / merge;
        result->grid_equal = result->grid_equal && grid.grid_h == picture->grid_h && grid.grid_w == picture->grid_w &&
                             grid.token_count == picture->token_count;
        window_order(height, width, side, room->order, room->bounds);
        for (uint32_t t = 0; t < grid.token_count; t++) {
            result->windows_equal = result->windows_equal && order[tokens + t] == (int32_t)(tokens + room->order[t]);
        }
        for (uint32_t w = 0; w < window_count(height, width, side); w++) {
            result->windows_equal =
                result->windows_equal && bounds[++windows] == (int32_t)(patches + room->bounds[w + 1] * dims[V_GROUP]);
        }
        check.row = 0;
        check.expected =
            rig->limits.dtype == MODEL_F32 && pixels != NULL ? pixels + (size_t)patches * check.width : NULL;
        model_set_probe(rig->model, case_probe_pixels, &check);
        rig_encode(rig, room->rgb, grid.grid_h, grid.grid_w, i);
        model_set_probe(rig->model, NULL, NULL);
        tokens += grid.token_count;
        patches += grid.grid_h * grid.grid_w;
    }
    result->windows_equal = result->windows_equal && tokens == window_count_golden && windows + 1 == bound_count;
    result->pixel_max = pixels != NULL && rig->limits.dtype == MODEL_F32 ? check.max : NAN;
    return true;
}

/* Expands the pads of the prompt's ids, notes where the pictures lie, and compares ids and positions. */
static inline void case_expand(const struct rig *rig, const struct golden_arrays *arrays,
                               const struct golden_case *golden, struct case_room *room, struct rig_prompt *prompt,
                               struct case_result *result)
{
    uint32_t prompt_count = 0, input_count = 0, position_count = 0, delta_count = 0, count = 0, picture = 0;
    const int32_t *ids = golden_find(arrays, golden->name, "prompt_ids", &prompt_count);
    const int32_t *expanded = golden_find(arrays, golden->name, "input_ids", &input_count);
    const int32_t *positions = golden_find(arrays, golden->name, "position_ids", &position_count);
    const int32_t *delta = golden_find(arrays, golden->name, "rope_delta", &delta_count);
    uint32_t merge = rig->checkpoint.dims[V_MERGE];

    for (uint32_t i = 0; i < prompt_count; i++) {
        uint32_t copies = 1;
        if (rig->checkpoint.has_vision && ids[i] == rig->checkpoint.image_token_id && picture < golden->picture_count) {
            const struct golden_picture *golden_picture = &golden->pictures[picture];
            room->spans[picture++] =
                (struct position_span){count, golden_picture->grid_h / merge, golden_picture->grid_w / merge};
            copies = golden_picture->token_count;
        }
        for (uint32_t k = 0; k < copies; k++) {
            assert(count < CASE_IDS_MAX - CASE_GREEDY_MAX);
            room->ids[count++] = ids[i];
        }
    }
    *prompt = (struct rig_prompt){room->ids, count, room->spans, picture};
    result->ids_equal = count == input_count && memcmp(room->ids, expanded, count * sizeof(int32_t)) == 0;
    position_fill(room->spans, picture, 0, count, room->positions);
    result->positions_equal =
        position_count == 3 * count && delta_count == 1 && position_delta(room->spans, picture) == delta[0];
    for (uint32_t i = 0; i < 3 * count && result->positions_equal; i++) {
        result->positions_equal = positions[i] == room->positions[i % count][i / count];
    }
}

static inline void case_compare_features(const struct rig *rig, const struct golden_arrays *arrays,
                                         const struct golden_case *golden, struct case_result *result)
{
    uint32_t count = 0, row = 0, width = rig->checkpoint.hidden;
    const float *expected = golden_find(arrays, golden->name, "vision_embeds", &count);
    double difference = 0, norm = 0;

    result->vision_max = expected != NULL ? 0 : NAN;
    for (uint32_t i = 0; i < golden->picture_count && expected != NULL; i++) {
        for (uint32_t t = 0; t < golden->pictures[i].token_count; t++, row++) {
            const void *feature = model_feature(rig->model, rig->mm_pages[i], t);
            for (uint32_t c = 0; c < width; c++) {
                float value = expected[(size_t)row * width + c], error = case_value(rig, feature, c) - value;
                result->vision_max = fmaxf(result->vision_max, fabsf(error));
                difference += (double)error * error;
                norm += (double)value * value;
            }
        }
    }
    result->vision_norm = expected != NULL ? (float)sqrt(difference / norm) : NAN;
}

/* Greedy generation beside the reference's. */
static inline void case_generate(struct rig *rig, const struct golden_arrays *arrays, const struct golden_case *golden,
                                 struct case_room *room, struct rig_prompt *prompt, struct case_result *result)
{
    uint32_t greedy_count = 0, logit_count = 0, vocab = rig->checkpoint.vocab;
    const int32_t *greedy = golden_find(arrays, golden->name, "greedy_ids", &greedy_count);
    const float *logits = golden_find(arrays, golden->name, "step_logits", &logit_count);
    double sum = 0;
    uint64_t compared = 0;

    result->greedy_equal = greedy_count > 0;
    result->logit_max = 0;
    for (uint32_t k = 0; k < greedy_count && result->greedy_equal; k++) {
        float margin = 0;
        if (k == 0) {
            rig_prefill(rig, prompt, 0, room->chunk > 0 ? room->chunk : RIG_ROWS_MAX);
        } else {
            rig_run(rig, prompt, 0, prompt->count + k - 1, 1, true);
        }
        for (uint32_t i = 0; i < vocab && (k + 1) * vocab <= logit_count; i++) {
            float error = fabsf(rig->logits[i] - logits[(size_t)k * vocab + i]);
            result->logit_max = fmaxf(result->logit_max, error);
            sum += error;
            compared++;
        }
        int32_t token = rig_argmax(rig->logits, vocab, &margin);
        result->greedy_equal = token == greedy[k];
        room->ids[prompt->count + k] = token;
    }
    result->logit_mean = compared > 0 ? (float)(sum / (double)compared) : NAN;
}

/* Runs the case. False if a file of it is missing or refused. */
static inline bool case_run(struct rig *rig, const struct golden_arrays *arrays, const struct golden_case *golden,
                            struct case_room *room, struct case_result *result)
{
    struct rig_prompt prompt;

    *result = (struct case_result){.grid_equal = true, .windows_equal = true, .pixel_max = NAN};
    case_open_room(room, room->folder, &rig->checkpoint.image);
    if (golden->picture_count > 0 && !case_encode(rig, arrays, golden, room, result)) {
        return false;
    }
    case_expand(rig, arrays, golden, room, &prompt, result);
    case_compare_features(rig, arrays, golden, result);
    case_generate(rig, arrays, golden, room, &prompt, result);
    return true;
}

/* The bounds of the fixtures' README. */
static inline bool case_is_within(const struct case_result *result, enum model_dtype dtype)
{
    bool is_exact = result->ids_equal && result->grid_equal && result->positions_equal && result->windows_equal &&
                    result->greedy_equal;
    if (dtype == MODEL_F32) {
        return is_exact && !(result->pixel_max > 1e-6F) && !(result->vision_max > 5e-5F) && result->logit_max <= 2e-3F;
    }
    return is_exact && !(result->vision_norm > 0.02F) && result->logit_mean <= 0.06F && result->logit_max <= 1.2F;
}

#endif
