/* Properties of engine/plan_measure.c, on the published configurations: known sizes are exact, none shrinks when limits
 * grow. */
#include "engine/plan_measure.h"
#include "engine/plan_solve.h"
#include "tests/harness.h"

#include <string.h>

static const char MODEL_7B[] = "tests/data/models/Qwen2.5-VL-7B-Instruct";
static const char MODEL_DEMO[] = "demo/model";

static struct checkpoint checkpoint;
static struct pool_limits limits;
static struct pool_sizes sizes;

/* Measures a model as the flags' defaults would, for `context` tokens and `running` requests. */
static void measure(const char *folder, enum model_dtype dtype, const char *context, uint32_t running)
{
    static char program[] = "ashlar", model[] = "--model=M", context_flag[64] = "--context-length=";
    char *arguments[] = {program, model, context_flag};
    struct checkpoint_source source = {.folder = folder};
    struct options options;
    struct options_error error;

    checkpoint_read(&checkpoint, &source);
    (void)strncpy(context_flag + 17, context, sizeof context_flag - 18);
    bool is_parsed = options_parse(&options, 3, arguments, NULL, &error);
    CU_ASSERT(is_parsed);
    struct plan_subject subject = {.checkpoint = &checkpoint, .dtype = dtype};
    struct plan_facts facts = plan_measure_facts(&subject, 2);
    bool is_limited = plan_limits_from_options(&options, &facts, running, &limits, &error);
    CU_ASSERT(is_limited);
    plan_measure_pools(&subject, &limits, &sizes);
}

/* The sizes as an array, for what holds of each. */
enum { SIZE_COUNT = sizeof(struct pool_sizes) / sizeof(uint64_t) };
static void copy_sizes(uint64_t *values)
{
    memcpy(values, &sizes, sizeof sizes);
}

static void published_sizes_are_exact(void)
{
    measure(MODEL_7B, MODEL_BF16, "32768", 16);
    CU_ASSERT(sizes.kv_page_bytes == 917504);
    CU_ASSERT(sizes.mm_page_bytes == 458752);
    CU_ASSERT(sizes.logits_bytes == 17ull * 152064 * 4);
    CU_ASSERT(sizes.weights_bytes >= 16584333312 && sizes.weights_bytes < 16584333312 + 16584333312 / 50);
    CU_ASSERT(checkpoint.tensor_count == 729 && checkpoint.tensor_bytes == 16584333312);
    CU_ASSERT(sizes.pixels_bytes >= 3ull * limits.picture_pixels);
}

static void every_pool_of_a_model_with_pictures_has_bytes(void)
{
    uint64_t values[SIZE_COUNT];

    measure(MODEL_DEMO, MODEL_BF16, "1024", 4);
    copy_sizes(values);
    for (int i = 0; i < SIZE_COUNT; i++) {
        CU_ASSERT(values[i] > 0);
        CU_ASSERT(values[i] < (uint64_t)1 << 40);
    }
}

static void float32_doubles_what_is_stored(void)
{
    measure(MODEL_DEMO, MODEL_BF16, "1024", 4);
    struct pool_sizes narrow = sizes;
    measure(MODEL_DEMO, MODEL_F32, "1024", 4);
    CU_ASSERT(sizes.kv_page_bytes == 2 * narrow.kv_page_bytes);
    CU_ASSERT(sizes.mm_page_bytes == 2 * narrow.mm_page_bytes);
    CU_ASSERT(sizes.logits_bytes == narrow.logits_bytes);
}

static void nothing_shrinks_when_the_limits_grow(void)
{
    uint64_t small[SIZE_COUNT], large[SIZE_COUNT];

    measure(MODEL_DEMO, MODEL_BF16, "512", 2);
    copy_sizes(small);
    measure(MODEL_DEMO, MODEL_BF16, "2048", 2);
    copy_sizes(large);
    for (int i = 0; i < SIZE_COUNT; i++) {
        CU_ASSERT(large[i] >= small[i]);
    }
    measure(MODEL_DEMO, MODEL_BF16, "2048", 9);
    copy_sizes(small);
    for (int i = 0; i < SIZE_COUNT; i++) {
        CU_ASSERT(small[i] >= large[i]);
    }
}

static void the_plans_own_formula_for_a_feature_page_is_the_models(void)
{
    measure(MODEL_DEMO, MODEL_BF16, "1024", 4);
    struct plan_subject subject = {.checkpoint = &checkpoint, .dtype = MODEL_BF16};
    CU_ASSERT(plan_measure_facts(&subject, 2).mm_page_bytes == sizes.mm_page_bytes);
    subject.dtype = MODEL_F32;
    CU_ASSERT(plan_measure_facts(&subject, 2).mm_page_bytes == 2 * sizes.mm_page_bytes);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(published_sizes_are_exact),
        CASE(every_pool_of_a_model_with_pictures_has_bytes),
        CASE(float32_doubles_what_is_stored),
        CASE(nothing_shrinks_when_the_limits_grow),
        CASE(the_plans_own_formula_for_a_feature_page_is_the_models),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/plan_measure", cases, NULL);
}
