/* checkpoint: the published files and the form that transformers 5 writes give the same numbers; what is missing or
 * wrong is refused by file and key, or is a documented default that the log names.
 */
#include "engine/model/checkpoint.h"

#include "engine/model/model.h"
#include "tests/model/model_copy.h"

#define MODEL "tests/data/fixtures/models/q25vl-a"
#define REAL  "tests/data/models/"

static struct model_copy copy;
static const char *override_json, *process_json;

static struct checkpoint read_folder(const char *folder)
{
    struct checkpoint checkpoint;
    checkpoint_read(&checkpoint, &(struct checkpoint_source){folder, override_json, process_json});
    return checkpoint;
}

static void try_read(const char *folder)
{
    (void)read_folder(folder);
}

/* Spoils one file of a copy; true if the program then ends with `code` and names all of the parts. */
static bool edited_says(const char *file, const char *from, const char *to, int code, const char *const *parts)
{
    copy_open(&copy, MODEL);
    copy_edit(&copy, file, from, to);
    copy_try(&copy, try_read);
    copy_close(&copy);
    return copy_said(&copy, code, parts);
}

#define EDIT_SAYS(file, from, to, code, ...) edited_says(file, from, to, code, (const char *const[]){__VA_ARGS__, NULL})

static void the_published_7b_has_729_tensors(void)
{
    struct checkpoint checkpoint = read_folder(REAL "Qwen2.5-VL-7B-Instruct");
    CU_ASSERT_EQUAL(checkpoint.tensor_count, 729);
    CU_ASSERT_EQUAL(checkpoint.tensor_bytes, 16584333312);
    CU_ASSERT_EQUAL(2 * 2 * checkpoint.dims[LAYERS] * checkpoint.dims[KV_OUT], 57344);
    CU_ASSERT(!checkpoint.is_tied && checkpoint.vocab == 152064 && checkpoint.context_max == 128000);
    CU_ASSERT(checkpoint.eos_count == 2 && checkpoint.eos_ids[0] == 151645 && checkpoint.image_token_id == 151655);
    CU_ASSERT_EQUAL(checkpoint.full_blocks, UINT64_C(1) << 7 | 1 << 15 | 1 << 23 | UINT64_C(1) << 31);
    CU_ASSERT(checkpoint.image.min_pixels == 3136 && checkpoint.image.max_pixels == 12845056);
    CU_ASSERT_DOUBLE_EQUAL(checkpoint.sampling.repetition_penalty, 1.05, 1e-6);
}

static void the_published_3b_is_tied(void)
{
    struct checkpoint checkpoint = read_folder(REAL "Qwen2.5-VL-3B-Instruct");
    CU_ASSERT(checkpoint.is_tied && checkpoint.dims[HIDDEN] == 2048 && checkpoint.dims[KV_OUT] == 256);
    CU_ASSERT_EQUAL(checkpoint.tensor_count, 824);
    CU_ASSERT(checkpoint.sampling.top_k == 1 && checkpoint.sampling.temperature > 0.09F);
}

static void both_config_forms_are_equal(void)
{
    static const char *const models[] = {MODEL, "tests/data/fixtures/models/q25vl-b"};
    for (int i = 0; i < 2; i++) {
        size_t count = 0;
        struct checkpoint published = read_folder(models[i]);
        copy_open(&copy, models[i]);
        char *text = copy_read(&copy, "config_transformers5.json", &count);
        copy_write(&copy, "config.json", text, count);
        struct checkpoint saved = read_folder(copy.folder);
        copy_close(&copy);
        saved.folder = published.folder;
        CU_ASSERT(memcmp(published.dims, saved.dims, sizeof saved.dims) == 0);
        CU_ASSERT(published.rope_theta == saved.rope_theta && published.is_tied == saved.is_tied);
        CU_ASSERT(memcmp(published.mrope_section, saved.mrope_section, sizeof saved.mrope_section) == 0);
        CU_ASSERT(published.context_max == saved.context_max && published.full_blocks == saved.full_blocks);
        CU_ASSERT(published.image_token_id == saved.image_token_id && published.eos_count == saved.eos_count);
        CU_ASSERT(published.vision_rope_theta == saved.vision_rope_theta && published.rms_eps == saved.rms_eps);
    }
}

static void overrides_change_both_depths(void)
{
    override_json = "{\"num_hidden_layers\": 1, \"vision_config\": {\"depth\": 2}}";
    process_json = "{\"image\": {\"max_pixels\": 50176}}";
    struct checkpoint checkpoint = read_folder(MODEL);
    CU_ASSERT(checkpoint.dims[LAYERS] == 1 && checkpoint.dims[V_BLOCKS] == 2 && checkpoint.dims[V_HIDDEN] == 160);
    CU_ASSERT_EQUAL(checkpoint.full_blocks, 2); /* block 3 is cut off */
    CU_ASSERT(checkpoint.image.max_pixels == 50176 && checkpoint.image.min_pixels == 3136);
    override_json = "{\"num_hidden_layers\": \"one\"}";
    copy_open(&copy, MODEL);
    copy_try(&copy, try_read);
    CU_ASSERT(SAYS(&copy, 4, "num_hidden_layers", "\"one\""));
    override_json = "{\"num_hidden";
    copy_try(&copy, try_read);
    CU_ASSERT(SAYS(&copy, 2, "--json-model-override-args"));
    override_json = NULL;
    process_json = "{\"image\": 5}";
    copy_try(&copy, try_read);
    CU_ASSERT(SAYS(&copy, 2, "--mm-process-config"));
    process_json = NULL;
    copy_close(&copy);
}

static void broken_configs_are_refused(void)
{
    copy_open(&copy, MODEL);
    copy_write(&copy, "config.json", "", 0);
    copy_try(&copy, try_read);
    CU_ASSERT(SAYS(&copy, 4, "config.json"));
    copy_write(&copy, "config.json", "{}", 2);
    copy_try(&copy, try_read);
    CU_ASSERT(SAYS(&copy, 4, "config.json", "architectures"));
    copy_write(&copy, "config.json", "{\"architectures\": [\"Qwen2_5_VL", 29);
    copy_try(&copy, try_read);
    CU_ASSERT(SAYS(&copy, 4, "config.json", "byte"));
    static char deep[5000];
    memset(deep, '[', sizeof deep);
    copy_write(&copy, "config.json", deep, sizeof deep);
    copy_try(&copy, try_read);
    CU_ASSERT(SAYS(&copy, 4, "config.json"));
    (void)unlink(copy_path(&copy, "config.json"));
    copy_try(&copy, try_read);
    CU_ASSERT(SAYS(&copy, 4, "config.json", "no such file"));
    copy_close(&copy);
}

static void wrong_values_are_refused_by_key(void)
{
    CU_ASSERT(EDIT_SAYS("config.json", "Qwen2_5_VLForConditionalGeneration", "GPT2LMHeadModel", 4, "GPT2LMHeadModel",
                        "known: Qwen2_5_VLForConditionalGeneration"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"hidden_size\": 256", "\"hidden_size\": 0", 4, "hidden_size", "is 0"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"num_attention_heads\": 2", "\"num_attention_heads\": 3", 4, "HIDDEN = 256",
                        "HEADS"));
    CU_ASSERT(
        EDIT_SAYS("config.json", "\"num_key_value_heads\": 1", "\"num_key_value_heads\": 0", 4, "num_key_value_heads"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"intermediate_size\": 700,", "", 4, "\"intermediate_size\" is missing"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"rope_theta\": 1000000.0,", "", 4, "\"rope_theta\" is missing"));
    CU_ASSERT(EDIT_SAYS("config.json", "24,\n   24", "24,\n   25", 4, "mrope_section", "64"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"type\": \"mrope\"", "\"type\": \"yarn\"", 4, "rope_scaling.type", "yarn"));
    CU_ASSERT(
        EDIT_SAYS("config.json", "\"image_token_id\": 1036", "\"image_token_id\": 1088", 4, "image_token_id", "1088"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"use_sliding_window\": false", "\"use_sliding_window\": true", 4,
                        "use_sliding_window"));
    CU_ASSERT(
        EDIT_SAYS("config.json", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"", 4, "hidden_act", "gelu"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"out_hidden_size\": 256", "\"out_hidden_size\": 128", 4, "out_hidden_size"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"num_heads\": 2", "\"num_heads\": 7", 4, "V_HIDDEN", "V_HEADS"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"vocab_size\": 1088", "\"vocab_size\": 1088, \"quantization_config\": {}", 4,
                        "quantization_config"));
    CU_ASSERT(EDIT_SAYS("generation_config.json", "1026", "1099", 4, "generation_config.json", "1099"));
    CU_ASSERT(EDIT_SAYS("generation_config.json", "\"top_p\": 0.001", "\"top_p\": 2", 4, "top_p"));
    CU_ASSERT(EDIT_SAYS("preprocessor_config.json", "Qwen2VLImageProcessor", "CLIPImageProcessor", 4,
                        "preprocessor_config.json", "image_processor_type", "CLIPImageProcessor"));
    CU_ASSERT(EDIT_SAYS("preprocessor_config.json", "\"patch_size\": 14", "\"patch_size\": 16", 4, "patch_size", "16"));
    CU_ASSERT(EDIT_SAYS("preprocessor_config.json", "\"max_pixels\": 401408", "\"max_pixels\": 100", 4, "max_pixels"));
    CU_ASSERT(EDIT_SAYS("preprocessor_config.json", "0.26862954", "0", 4, "image_std"));
    CU_ASSERT(EDIT_SAYS("preprocessor_config.json", "\"merge_size\": 2", "\"merge_size\": 2, \"do_resize\": false", 4,
                        "do_resize"));
}

static void defaults_are_logged(void)
{
    CU_ASSERT(EDIT_SAYS("preprocessor_config.json", "\"max_pixels\": 401408,", "", 0, "config_default", "max_pixels",
                        "12845056"));
    CU_ASSERT(
        EDIT_SAYS("preprocessor_config.json", "\"patch_size\": 14,", "", 0, "config_default", "patch_size", "14"));
    CU_ASSERT(EDIT_SAYS("preprocessor_config.json", "\"merge_size\": 2,", "", 0, "config_default", "merge_size"));
    CU_ASSERT(EDIT_SAYS("preprocessor_config.json", "\"image_mean\"", "\"other\"", 0, "config_default", "image_mean"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"window_size\": 112,", "", 0, "config_default", "window_size", "112"));
    CU_ASSERT(EDIT_SAYS("config.json", "\"fullatt_block_indexes\"", "\"other\"", 0, "config_default",
                        "fullatt_block_indexes"));
    CU_ASSERT(
        EDIT_SAYS("config.json", "\"tie_word_embeddings\": true,", "", 0, "config_default", "tie_word_embeddings"));
}

static void pixel_limits_come_in_both_spellings(void)
{
    copy_open(&copy, MODEL);
    copy_edit(&copy, "preprocessor_config.json", "\"max_pixels\": 401408,", "\"size\": {\"longest_edge\": 200704},");
    struct checkpoint checkpoint = read_folder(copy.folder);
    CU_ASSERT(checkpoint.image.max_pixels == 200704 && checkpoint.image.min_pixels == 3136);
    process_json = "{\"image\": {\"size\": {\"longest_edge\": 100352}}}";
    checkpoint = read_folder(copy.folder);
    CU_ASSERT_EQUAL(checkpoint.image.max_pixels, 100352);
    process_json = NULL;
    copy_close(&copy);
}

static void a_missing_preprocessor_is_refused(void)
{
    copy_open(&copy, MODEL);
    (void)unlink(copy_path(&copy, "preprocessor_config.json"));
    copy_try(&copy, try_read);
    CU_ASSERT(SAYS(&copy, 4, "preprocessor_config.json", "no such file"));
    copy_close(&copy);
}

static void other_architectures_are_refused_cleanly(void)
{
    static const char *const folders[] = {REAL "Qwen2-VL-2B-Instruct-AWQ", REAL "Qwen3-VL-4B-Instruct",
                                          REAL "Qwen3-8B"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        copy_open(&copy, folders[i]);
        copy_try(&copy, try_read);
        CU_ASSERT(SAYS(&copy, 4, "architectures", "known:"));
        copy_close(&copy);
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_published_7b_has_729_tensors),
        CASE(the_published_3b_is_tied),
        CASE(both_config_forms_are_equal),
        CASE(overrides_change_both_depths),
        CASE(broken_configs_are_refused),
        CASE(wrong_values_are_refused_by_key),
        CASE(defaults_are_logged),
        CASE(pixel_limits_come_in_both_spellings),
        CASE(a_missing_preprocessor_is_refused),
        CASE(other_architectures_are_refused_cleanly),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "checkpoint", cases, NULL);
}
