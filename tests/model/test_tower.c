/* tower: the size of a unit, and text steps between units, change no bit of a picture's features. */
#include "engine/log.h"
#include "tests/harness.h"
#include "tests/model/case_run.h"

#define MODEL "tests/data/fixtures/models/q25vl-a"

enum { TOKENS_MAX = 512 };

static struct rig rig;
static struct case_room room;
static uint8_t features[TOKENS_MAX * 256 * 4], other[TOKENS_MAX * 256 * 4];

static struct image_grid open_picture(enum model_dtype dtype, uint32_t tile_rows, const char *path)
{
    struct image_grid grid;
    rig_open(&rig,
             &(struct rig_setup){.folder = MODEL, .dtype = dtype, .tile_rows_max = tile_rows, .patches_max = 4096});
    case_open_room(&room, "tests/data/fixtures", &rig.checkpoint.image);
    CU_ASSERT_FATAL(case_decode(&room, path, &rig.checkpoint.image, &grid));
    CU_ASSERT_FATAL(grid.token_count <= TOKENS_MAX);
    return grid;
}

static void copy_features(uint32_t picture, uint32_t count, uint8_t *out)
{
    size_t bytes = model_feature_bytes(rig.model);
    for (uint32_t t = 0; t < count; t++) {
        memcpy(out + t * bytes, model_feature(rig.model, rig.mm_pages[picture], t), bytes);
    }
}

static void tile_sizes_do_not_change_a_bit(void)
{
    static const uint32_t tiles[] = {4, 20, 64, 1000, 4096};
    for (int d = 0; d < 2; d++) {
        for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
            struct image_grid grid =
                open_picture(d == 0 ? MODEL_BF16 : MODEL_F32, tiles[i], "images/resized/p200x300_196x308.png");
            memset(other, 0, sizeof other);
            rig_encode(&rig, room.rgb, grid.grid_h, grid.grid_w, 0);
            copy_features(0, grid.token_count, i == 0 ? features : other);
            CU_ASSERT(i == 0 || memcmp(features, other, grid.token_count * model_feature_bytes(rig.model)) == 0);
            rig_close(&rig);
        }
    }
}

static void units_are_counted_before(void)
{
    struct image_grid grid = open_picture(MODEL_BF16, 64, "images/resized/p333x500_336x504.png");
    uint32_t units = 1;
    model_vision_begin(rig.model, room.rgb, grid.grid_h, grid.grid_w, rig.mm_pages[0]);
    while (!model_vision_advance(rig.model)) {
        units++;
    }
    CU_ASSERT_EQUAL(units, model_vision_units(rig.model, grid.grid_h, grid.grid_w));
    CU_ASSERT_EQUAL(units, (36 * 24 + 63) / 64 * (1 + 2 * 4 + 1));
    rig_close(&rig);
}

static void text_steps_may_run_between_units(void)
{
    static const int32_t ids[40] = {5, 6, 7, 8};
    struct rig_prompt prompt = {.ids = ids, .count = 40};
    struct image_grid grid = open_picture(MODEL_BF16, 32, "images/resized/p200x300_196x308.png");
    rig_encode(&rig, room.rgb, grid.grid_h, grid.grid_w, 0);
    copy_features(0, grid.token_count, features);
    model_vision_begin(rig.model, room.rgb, grid.grid_h, grid.grid_w, rig.mm_pages[1]);
    uint32_t index = 0;
    do {
        rig_run(&rig, &prompt, 0, index, 1, true);
        index = (index + 1) % 40;
    } while (!model_vision_advance(rig.model));
    copy_features(1, grid.token_count, other);
    CU_ASSERT(memcmp(features, other, grid.token_count * model_feature_bytes(rig.model)) == 0);
    rig_close(&rig);
}

static void a_dropped_picture_leaves_no_trace(void)
{
    struct image_grid grid = open_picture(MODEL_BF16, 32, "images/resized/p200x300_196x308.png");
    rig_encode(&rig, room.rgb, grid.grid_h, grid.grid_w, 0);
    copy_features(0, grid.token_count, features);
    for (uint32_t stop = 1; stop < 40; stop += 13) {
        model_vision_begin(rig.model, room.rgb, grid.grid_h, grid.grid_w, rig.mm_pages[1]);
        for (uint32_t i = 0; i < stop; i++) {
            CU_ASSERT_FALSE(model_vision_advance(rig.model));
        }
        model_vision_drop(rig.model);
    }
    rig_encode(&rig, room.rgb, grid.grid_h, grid.grid_w, 2);
    copy_features(2, grid.token_count, other);
    CU_ASSERT(memcmp(features, other, grid.token_count * model_feature_bytes(rig.model)) == 0);
    rig_close(&rig);
}

static void advance_nothing(void)
{
    (void)model_vision_advance(rig.model);
}

static void begin_too_large(void)
{
    model_vision_begin(rig.model, room.rgb, 66, 64, rig.mm_pages[0]);
}

static void misuse_is_caught(void)
{
    (void)open_picture(MODEL_BF16, 64, "images/resized/px56_56x56.png");
    CU_ASSERT(harness_aborts(advance_nothing));
    CU_ASSERT(harness_aborts(begin_too_large)); /* 4224 patches; 4096 are planned */
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(tile_sizes_do_not_change_a_bit),    CASE(units_are_counted_before), CASE(text_steps_may_run_between_units),
        CASE(a_dropped_picture_leaves_no_trace), CASE(misuse_is_caught),         {NULL, NULL},
    };
    log_set_level(LOG_ERROR);
    kernels_choose();
    return harness_run(argc, argv, "tower", cases, NULL);
}
