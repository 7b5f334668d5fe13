/* run: the fixtures' cases within the README's bounds in both types, layer by layer too; and the law that a row's bits
 * do not depend on its company, on chunks, tiles or threads.
 */
#include "engine/crew.h"
#include "engine/log.h"
#include "tests/harness.h"
#include "tests/model/case_run.h"
#include "tests/small_plan.h"

#define FIXTURES "tests/data/fixtures"

static struct golden_case goldens[GOLDEN_CASES_MAX];
static struct golden_arrays arrays;
static struct case_room room;
static struct rig rig;

static uint32_t open_model(const char *model, enum model_dtype dtype, uint32_t tile_rows, struct team *team)
{
    char path[256];
    (void)snprintf(path, sizeof path, FIXTURES "/cases/%s.json", model);
    uint32_t count = golden_read(path, goldens);
    (void)snprintf(path, sizeof path, FIXTURES "/cases/%s.safetensors", model);
    CU_ASSERT_FATAL(count > 0 && golden_open(&arrays, path));
    (void)snprintf(path, sizeof path, FIXTURES "/models/%s", model);
    rig_open(&rig, &(struct rig_setup){.folder = path, .dtype = dtype, .tile_rows_max = tile_rows, .team = team});
    room.folder = FIXTURES;
    room.chunk = 0;
    return count;
}

static const struct golden_case *find_case(uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(goldens[i].name, name) == 0) {
            return &goldens[i];
        }
    }
    CU_FAIL_FATAL("no such case");
    return NULL;
}

static void run_all(const char *model, enum model_dtype dtype)
{
    uint32_t count = open_model(model, dtype, 0, NULL);
    for (uint32_t i = 0; i < count; i++) {
        struct case_result result;
        CU_ASSERT_FATAL(case_run(&rig, &arrays, &goldens[i], &room, &result));
        bool is_within = case_is_within(&result, dtype);
        if (!is_within) {
            (void)fprintf(stderr, "%s %s: vision %g, logits %g, see build/ashlar-parity\n", model, goldens[i].name,
                          (double)result.vision_max, (double)result.logit_max);
        }
        CU_ASSERT(is_within);
    }
    rig_close(&rig);
}

static void tied_model_in_float32_equals_the_reference(void)
{
    run_all("q25vl-a", MODEL_F32);
}

static void tied_model_in_bfloat16_equals_the_reference(void)
{
    run_all("q25vl-a", MODEL_BF16);
}

static void untied_sharded_model_in_float32_equals_the_reference(void)
{
    run_all("q25vl-b", MODEL_F32);
}

static void untied_sharded_model_in_bfloat16_equals_the_reference(void)
{
    run_all("q25vl-b", MODEL_BF16);
}

/* ---- every layer ---- */

struct layer_check {
    struct golden_arrays *layers;
    char last[32];     /* the array that was compared last */
    uint32_t row;      /* next row of it */
    uint32_t compared; /* rows, all arrays together */
    uint32_t linear_adds;
    float max;
};

static void compare_rows(struct layer_check *check, const char *name, const float *got, uint32_t rows, uint32_t width)
{
    uint32_t count = 0;
    const float *expected = golden_find(check->layers, NULL, name, &count);
    if (expected == NULL) {
        return;
    }
    if (strcmp(check->last, name) != 0) {
        (void)snprintf(check->last, sizeof check->last, "%s", name);
        check->row = 0;
    }
    CU_ASSERT_FATAL((uint64_t)(check->row + rows) * width <= count);
    for (size_t i = 0; i < (size_t)rows * width; i++) {
        float value = expected[(size_t)check->row * width + i];
        check->max = fmaxf(check->max, fabsf(got[i] - value) / fmaxf(1, fabsf(value)));
    }
    check->row += rows;
    check->compared += rows;
}

/* The residual stream after a layer is written by the second of its two sums. */
static void probe_layers(void *ctx, int buffer, uint32_t layer, const void *data, uint32_t rows)
{
    struct layer_check *check = ctx;
    const uint32_t *dims = rig.checkpoint.dims;
    char name[32];
    if (buffer == X && check->linear_adds == 0) {
        compare_rows(check, "text/layer_in", data, rows, dims[HIDDEN]);
    } else if (buffer == X && check->linear_adds % 2 == 0) {
        (void)snprintf(name, sizeof name, "text/layer%u", layer);
        compare_rows(check, name, data, rows, dims[HIDDEN]);
    } else if (buffer == VX && check->linear_adds == 0) {
        compare_rows(check, "vision/block_in", data, rows, dims[V_HIDDEN]);
    } else if (buffer == VX && check->linear_adds % 2 == 0) {
        (void)snprintf(name, sizeof name, "vision/block%u", layer);
        compare_rows(check, name, data, rows, dims[V_HIDDEN]);
    } else if (buffer == VFEATURES) {
        compare_rows(check, "vision/merger", data, rows, dims[V_OUT]);
    }
    check->linear_adds += buffer == X || buffer == VX ? 1 : 0;
}

static void every_layer_equals_the_reference(void)
{
    static const char *const models[] = {"q25vl-a", "q25vl-b"};
    static struct golden_arrays layers;
    for (size_t m = 0; m < 2; m++) {
        char path[256];
        (void)snprintf(path, sizeof path, FIXTURES "/cases/%s.layers.safetensors", models[m]);
        CU_ASSERT_FATAL(golden_open(&layers, path));
        uint32_t count = open_model(models[m], MODEL_F32, 4096, NULL);
        const struct golden_case *golden = find_case(count, "img_56x56");
        CU_ASSERT_FATAL(golden->picture_count == 1);
        struct layer_check check = {.layers = &layers};
        struct case_result result = {.ids_equal = false};
        struct rig_prompt prompt;
        struct image_grid grid;
        case_open_room(&room, FIXTURES, &rig.checkpoint.image);
        CU_ASSERT_FATAL(case_decode(&room, golden->pictures[0].path, &rig.checkpoint.image, &grid));
        model_set_probe(rig.model, probe_layers, &check);
        rig_encode(&rig, room.rgb, grid.grid_h, grid.grid_w, 0);
        case_expand(&rig, &arrays, golden, &room, &prompt, &result);
        check.linear_adds = 0;
        rig_prefill(&rig, &prompt, 0, RIG_ROWS_MAX);
        model_set_probe(rig.model, NULL, NULL);
        uint32_t patches = grid.grid_h * grid.grid_w, dims_layers = rig.checkpoint.dims[LAYERS];
        CU_ASSERT_EQUAL(check.compared, patches * (1 + rig.checkpoint.dims[V_BLOCKS]) + grid.token_count +
                                            prompt.count * (1 + dims_layers));
        CU_ASSERT(check.max < 1e-4F); /* the fixtures' own bound for layers; rounding reaches 6e-5 */
        rig_close(&rig);
    }
}

/* ---- bits ---- */

enum { VOCAB_MAX = 2048 };

/* The case's first logits, in chunks of `chunk`. */
static void first_logits(const struct golden_case *golden, uint32_t chunk, struct rig_prompt *prompt, float *logits)
{
    struct case_result result = {.grid_equal = true};
    case_open_room(&room, FIXTURES, &rig.checkpoint.image);
    CU_ASSERT_FATAL(case_encode(&rig, &arrays, golden, &room, &result));
    case_expand(&rig, &arrays, golden, &room, prompt, &result);
    rig_prefill(&rig, prompt, 0, chunk);
    CU_ASSERT_FATAL(rig.checkpoint.vocab <= VOCAB_MAX);
    memcpy(logits, rig.logits, rig.checkpoint.vocab * sizeof(float));
}

static bool bits_equal(const float *a, const float *b)
{
    return memcmp(a, b, rig.checkpoint.vocab * sizeof(float)) == 0;
}

static void chunks_do_not_change_a_bit(void)
{
    static float whole[VOCAB_MAX], chunked[VOCAB_MAX];
    struct rig_prompt prompt;
    for (int d = 0; d < 2; d++) {
        uint32_t count = open_model("q25vl-a", d == 0 ? MODEL_BF16 : MODEL_F32, 0, NULL);
        const struct golden_case *golden = find_case(count, "three_images");
        first_logits(golden, RIG_ROWS_MAX, &prompt, whole);
        static const uint32_t chunks[] = {1, 16, 64, 37};
        for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
            first_logits(golden, chunks[i], &prompt, chunked);
            CU_ASSERT(bits_equal(whole, chunked));
        }
        rig_close(&rig);
    }
}

static void decoding_gives_the_bits_of_a_prefill(void)
{
    static float decoded[VOCAB_MAX];
    struct rig_prompt prompt;
    uint32_t count = open_model("q25vl-a", MODEL_BF16, 0, NULL);
    first_logits(find_case(count, "two_images"), RIG_ROWS_MAX, &prompt, decoded);
    for (uint32_t k = 0; k < 20; k++) { /* twenty tokens, one by one */
        room.ids[prompt.count + k] = (int32_t)(k * 31 % 1000);
        rig_run(&rig, &prompt, 0, prompt.count + k, 1, true);
    }
    memcpy(decoded, rig.logits, rig.checkpoint.vocab * sizeof(float));
    rig_run(&rig, &prompt, 1, 0, prompt.count + 20, true); /* the same at once, in another sequence */
    CU_ASSERT(bits_equal(decoded, rig.logits));
    rig_close(&rig);
}

/* One step: a chunk of a prompt, and a decode row of each of three others. */
static void company_does_not_change_a_bit(void)
{
    static float alone[VOCAB_MAX];
    static const uint32_t lengths[] = {40, 17, 33};
    struct rig_prompt prompt;
    uint32_t count = open_model("q25vl-b", MODEL_BF16, 0, NULL), vocab = rig.checkpoint.vocab;
    first_logits(find_case(count, "img_224x224"), RIG_ROWS_MAX, &prompt, alone);

    struct rig_prompt text = {.ids = room.ids, .count = 64};
    for (uint32_t s = 0; s < 3; s++) {
        rig_run(&rig, &text, s + 1, 0, lengths[s], false);
    }
    uint32_t rows = 0, picked[4];
    for (uint32_t s = 0; s < 3; s++) {
        rig_rows(&rig, &text, s + 1, lengths[s], 1, rig.rows + rows);
        picked[s] = rows++;
    }
    rig_rows(&rig, &prompt, 0, 0, prompt.count, rig.rows + rows);
    rows += prompt.count;
    picked[3] = rows - 1;
    struct text_step step = {
        .rows = rig.rows,
        .row_count = rows,
        .sequences = rig.sequences,
        .sequence_count = RIG_SEQUENCES_MAX,
        .logit_rows = picked,
        .logit_row_count = 4,
    };
    model_text_step(rig.model, &step, rig.logits);
    CU_ASSERT(bits_equal(alone, rig.logits + 3 * (size_t)vocab));
    memcpy(alone, rig.logits + vocab, vocab * sizeof(float));
    rig_run(&rig, &text, 2, lengths[1], 1, true); /* the second decode row once more, by itself */
    CU_ASSERT(bits_equal(alone, rig.logits));
    rig_close(&rig);
}

static void threads_do_not_change_a_bit(void)
{
    static float serial[VOCAB_MAX], parallel[VOCAB_MAX];
    static struct crew crew;
    struct rig_prompt prompt;
    uint32_t count = open_model("q25vl-a", MODEL_BF16, 0, NULL);
    first_logits(find_case(count, "img_333x500"), RIG_ROWS_MAX, &prompt, serial);
    rig_close(&rig);
    crew_start(&crew, 2);
    count = open_model("q25vl-a", MODEL_BF16, 0, &crew.team);
    first_logits(find_case(count, "img_333x500"), RIG_ROWS_MAX, &prompt, parallel);
    CU_ASSERT(bits_equal(serial, parallel));
    rig_close(&rig);
    crew_stop(&crew);
}

static void dummy_weights_are_small_and_repeat(void)
{
    static float first[VOCAB_MAX];
    static const int32_t ids[] = {1, 2, 3, 4, 5};
    struct rig_prompt prompt = {.ids = ids, .count = 5};
    for (int i = 0; i < 2; i++) {
        rig_open(&rig, &(struct rig_setup){.folder = FIXTURES "/models/q25vl-a", .format = LOAD_DUMMY});
        rig_prefill(&rig, &prompt, 0, 5);
        for (uint32_t v = 0; v < rig.checkpoint.vocab; v++) {
            CU_ASSERT_FATAL(isfinite(rig.logits[v]));
        }
        if (i == 0) {
            memcpy(first, rig.logits, rig.checkpoint.vocab * sizeof(float));
        }
        CU_ASSERT(bits_equal(first, rig.logits));
        rig_close(&rig);
    }
}

/* The published 7B, without its weights: what the plan asks for. */
static void the_7b_measures_without_weights(void)
{
    static struct checkpoint checkpoint;
    struct model_sizes sizes, bounded;
    struct model_limits limits = {
        .dtype = MODEL_BF16,
        .step_rows_max = 8192 + 64,
        .logit_rows_max = 64,
        .sequences_max = 64,
        .patches_max = 65536,
        .tile_rows_max = 256,
        .threads = 2,
    };
    checkpoint_read(&checkpoint, &(struct checkpoint_source){.folder = "tests/data/models/Qwen2.5-VL-7B-Instruct"});
    model_measure(&checkpoint, &limits, &sizes);
    CU_ASSERT_EQUAL(sizes.kv_page_bytes, 57344 * KV_PAGE_TOKENS);
    CU_ASSERT_EQUAL(sizes.mm_page_bytes, 3584 * 2 * MM_PAGE_TOKENS);
    CU_ASSERT_EQUAL(sizes.pixels_bytes, 65536 * 14 * 14 * 3);
    CU_ASSERT_EQUAL(sizes.logits_bytes, UINT64_C(64) * 152064 * 4);
    CU_ASSERT(sizes.weights_bytes >= checkpoint.tensor_bytes);
    /* A patch costs its residual row, its key and its value; nothing else grows with the picture but the order. */
    limits.patches_max = 32768;
    model_measure(&checkpoint, &limits, &bounded);
    CU_ASSERT_EQUAL(sizes.act_vision_bytes - bounded.act_vision_bytes, UINT64_C(32768) * 1280 * (4 + 2 + 2));
    CU_ASSERT_EQUAL(sizes.act_text_bytes, bounded.act_text_bytes);
    limits.patches_max = 0;
    model_measure(&checkpoint, &limits, &bounded);
    CU_ASSERT(bounded.act_vision_bytes == 0 && bounded.pixels_bytes == 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(tied_model_in_float32_equals_the_reference),
        CASE(tied_model_in_bfloat16_equals_the_reference),
        CASE(untied_sharded_model_in_float32_equals_the_reference),
        CASE(untied_sharded_model_in_bfloat16_equals_the_reference),
        CASE(every_layer_equals_the_reference),
        CASE(chunks_do_not_change_a_bit),
        CASE(decoding_gives_the_bits_of_a_prefill),
        CASE(company_does_not_change_a_bit),
        CASE(threads_do_not_change_a_bit),
        CASE(dummy_weights_are_small_and_repeat),
        CASE(the_7b_measures_without_weights),
        {NULL, NULL},
    };
    log_set_level(LOG_ERROR);
    kernels_choose();
    return small_plan_open() ? harness_run(argc, argv, "run", cases, NULL) : 2; /* the crew's stacks */
}
