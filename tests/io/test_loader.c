/* loader: sound folders load, whatever their files are called; damaged ones are refused by file and tensor. Cases f14,
 * f15.
 */
#include "engine/io/loader.h"

#include "tests/model/model_copy.h"

#define TIED    "tests/data/fixtures/models/q25vl-a"
#define SHARDED "tests/data/fixtures/models/q25vl-b"
#define INDEX   "model.safetensors.index.json"

static struct model_copy copy;

static void try_load(const char *folder)
{
    struct checkpoint checkpoint;
    enum tensor_type type;
    checkpoint_read(&checkpoint, &(struct checkpoint_source){.folder = folder});
    uint64_t bytes = loader_bytes(&checkpoint);
    struct loader *loader = loader_open(&checkpoint, harness_memory((bytes + 4095) / 4096 * 4096), bytes);
    for (uint32_t i = 0; i < checkpoint.tensor_count; i++) {
        (void)loader_tensor(loader, i, &type);
    }
    (void)fprintf(stderr, "loaded %llu\n", (unsigned long long)loader_file_bytes(loader));
    loader_close(loader);
}

static void begin(const char *folder)
{
    copy_open(&copy, folder);
}

/* Loads the spoiled copy; true if it ends with `code` and says all of the parts. */
static bool end_says(int code, const char *const *parts)
{
    copy_try(&copy, try_load);
    copy_close(&copy);
    return copy_said(&copy, code, parts);
}

#define END_SAYS(code, ...) end_says(code, (const char *const[]){__VA_ARGS__, NULL})

/* Keeps the first `bytes` of a file. */
static void cut(const char *name, size_t bytes)
{
    size_t count = 0;
    char *file = copy_read(&copy, name, &count);
    CU_ASSERT_FATAL(bytes < count);
    copy_write(&copy, name, file, bytes);
}

/* Changes text of a safetensors header; the length must stay. */
static void edit_header(const char *name, const char *from, const char *to)
{
    size_t count = 0;
    char *file = copy_read(&copy, name, &count);
    uint64_t header = 0;
    memcpy(&header, file, sizeof header);
    char *at = NULL;
    for (size_t i = 8; i + strlen(from) <= 8 + header && at == NULL; i++) {
        at = memcmp(file + i, from, strlen(from)) == 0 ? file + i : NULL;
    }
    CU_ASSERT_FATAL(at != NULL && strlen(from) == strlen(to));
    memcpy(at, to, strlen(to));
    copy_write(&copy, name, file, count);
}

/* Adds a tensor of `bytes` zeros to a file. */
static void add_tensor(const char *name, const char *tensor, const char *type, const char *shape, size_t bytes)
{
    static char header_text[256 * 1024];
    size_t count = 0;
    uint64_t header = 0, padded;
    char *file = copy_read(&copy, name, &count), *made = harness_memory(count + bytes + 8192);
    memcpy(&header, file, sizeof header);
    uint64_t data = count - 8 - header, last = header;
    while (file[8 + last - 1] != '}') {
        last--; /* padding */
    }
    int length = snprintf(header_text, sizeof header_text,
                          "%.*s,\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%llu,%llu]}}", (int)last - 1,
                          file + 8, tensor, type, shape, (unsigned long long)data, (unsigned long long)(data + bytes));
    padded = ((uint64_t)length + 7) / 8 * 8;
    memcpy(made, &padded, 8);
    memset(made + 8, ' ', padded);
    memcpy(made + 8, header_text, (size_t)length);
    memcpy(made + 8 + padded, file + 8 + header, data);
    copy_write(&copy, name, made, 8 + padded + data + bytes);
}

static void published_folders_load(void)
{
    begin(TIED);
    CU_ASSERT(END_SAYS(0, "loaded 6700288"));
    begin(SHARDED);
    CU_ASSERT(END_SAYS(0, "loaded"));
}

static void missing_and_damaged_shards_are_refused_by_name(void)
{
    begin(SHARDED);
    (void)unlink(copy_path(&copy, "model-00002-of-00003.safetensors"));
    CU_ASSERT(END_SAYS(4, "model-00002-of-00003.safetensors", "No such file"));
    begin(SHARDED);
    cut("model-00003-of-00003.safetensors", 6192760 - 1048576);
    CU_ASSERT(END_SAYS(4, "model-00003-of-00003.safetensors", "cut off"));
    begin(SHARDED);
    copy_write(&copy, "model-00001-of-00003.safetensors", "", 0);
    CU_ASSERT(END_SAYS(4, "model-00001-of-00003.safetensors", "too short"));
    begin(SHARDED);
    copy_write(&copy, "model-00001-of-00003.safetensors", "\0\0\0\0\0\0\0\x10{}", 10); /* 2^60 */
    CU_ASSERT(END_SAYS(4, "model-00001-of-00003.safetensors", "length"));
}

static void any_shard_names_load_with_a_matching_index(void)
{
    static const char *const from[] = {"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                       "model-00003-of-00003.safetensors"};
    static const char *const to[] = {"part.safetensors-00001-of-00003.safetensors", "b.safetensors", "c.safetensors"};
    begin(SHARDED);
    for (int i = 0; i < 3; i++) {
        char old[sizeof copy.path];
        (void)snprintf(old, sizeof old, "%s", copy_path(&copy, from[i]));
        CU_ASSERT_FATAL(rename(old, copy_path(&copy, to[i])) == 0);
    }
    for (int i = 0; i < 3; i++) {
        size_t count = 0;
        char *index = copy_read(&copy, INDEX, &count);
        index[count] = '\0';
        while (strstr(index, from[i]) != NULL) {
            copy_edit(&copy, INDEX, from[i], to[i]);
            index = copy_read(&copy, INDEX, &count);
            index[count] = '\0';
        }
    }
    CU_ASSERT(END_SAYS(0, "loaded"));
}

static void an_index_that_lies_is_refused(void)
{
    begin(SHARDED); /* names a shard that does not hold the tensor */
    copy_edit(&copy, INDEX, "\"model.norm.weight\": \"model-00002", "\"model.norm.weight\": \"model-00001");
    CU_ASSERT(END_SAYS(4, "model.norm.weight", "model-00001-of-00003.safetensors"));
    begin(SHARDED); /* names a tensor that no shard holds */
    edit_header("model-00002-of-00003.safetensors", "model.layers.1.input_layernorm.weight",
                "model.layers.1.at.rotary_emb.inv_freq");
    CU_ASSERT(END_SAYS(4, "model-00002-of-00003.safetensors", "model.layers.1.input_layernorm.weight", "missing"));
    begin(SHARDED);
    copy_edit(&copy, INDEX, "\"model.norm.weight\"", "\"model.norm.weights\"");
    CU_ASSERT(END_SAYS(4, INDEX, "model.norm.weights", "not one of the model's"));
    begin(SHARDED);
    copy_edit(&copy, INDEX, "\"model.norm.weight\":",
              "\"model.norm.weight\": \"model-00003-of-00003.safetensors\", "
              "\"model.norm.weight\":");
    CU_ASSERT(END_SAYS(4, "model.norm.weight", "twice"));
    begin(SHARDED);
    copy_edit(&copy, INDEX, "model-00001-of-00003.safetensors", "../model-00001.safetensors");
    CU_ASSERT(END_SAYS(4, INDEX, "../model-00001.safetensors"));
    begin(SHARDED);
    copy_edit(&copy, INDEX, "\"weight_map\"", "\"weights\"");
    CU_ASSERT(END_SAYS(4, INDEX, "weight_map"));
    begin(SHARDED);
    copy_write(&copy, INDEX, "{\"weight_map\": {\"a\": ", 21);
    CU_ASSERT(END_SAYS(4, INDEX));
}

static void without_an_index_there_must_be_one_file(void)
{
    begin(SHARDED);
    (void)unlink(copy_path(&copy, INDEX));
    CU_ASSERT(END_SAYS(4, "3 .safetensors files", INDEX));
    begin(TIED);
    char old[sizeof copy.path];
    (void)snprintf(old, sizeof old, "%s", copy_path(&copy, "model.safetensors"));
    CU_ASSERT_FATAL(rename(old, copy_path(&copy, "weights.safetensors")) == 0);
    CU_ASSERT(END_SAYS(0, "loaded 6700288"));
    begin(TIED);
    (void)unlink(copy_path(&copy, "model.safetensors"));
    CU_ASSERT(END_SAYS(4, "neither", "model.safetensors", "dummy"));
}

static void strangers_beside_an_index_are_left_alone(void)
{
    begin(SHARDED);
    copy_write(&copy, "consolidated.safetensors", "junk", 4);
    CU_ASSERT(END_SAYS(0, "weights_ignored", "consolidated.safetensors", "loaded"));
}

static void tensors_must_match_the_table_one_to_one(void)
{
    begin(TIED); /* one is missing, one is too many */
    edit_header("model.safetensors", "model.norm.weight", "model.norm.wright");
    CU_ASSERT(END_SAYS(4, "model.safetensors", "model.norm.wright", "not one of the model's"));
    begin(TIED);
    edit_header("model.safetensors", "model.layers.1.self_attn.q_proj.bias", "model.layers.0.self_attn.q_proj.bias");
    CU_ASSERT(END_SAYS(4, "model.layers.0.self_attn.q_proj.bias", "twice"));
    begin(TIED);
    edit_header("model.safetensors", "[700,256]", "[350,512]");
    CU_ASSERT(END_SAYS(4, "axis 0 is 350", "FFN = 700"));
    begin(SHARDED);
    copy_edit(&copy, "config.json", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
    CU_ASSERT(END_SAYS(0, "weights_ignored", "lm_head.weight", "loaded"));
    begin(TIED);
    copy_edit(&copy, "config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    CU_ASSERT(END_SAYS(4, "lm_head.weight", "missing"));
}

static void what_the_reference_ignores_is_ignored_with_a_line(void)
{
    begin(TIED);
    add_tensor("model.safetensors", "lm_head.weight", "BF16", "[1088,256]", 1088 * 256 * 2);
    CU_ASSERT(END_SAYS(0, "weights_ignored", "lm_head.weight", "loaded 6700288"));
    begin(TIED);
    add_tensor("model.safetensors", "model.layers.0.self_attn.rotary_emb.inv_freq", "F32", "[64]", 256);
    CU_ASSERT(END_SAYS(0, "weights_ignored", "inv_freq", "loaded 6700288"));
    begin(TIED);
    add_tensor("model.safetensors", "model.layers.2.mlp.up_proj.weight", "BF16", "[1]", 2);
    CU_ASSERT(END_SAYS(4, "model.layers.2.mlp.up_proj.weight", "not one of the model's"));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(published_folders_load),
        CASE(missing_and_damaged_shards_are_refused_by_name),
        CASE(any_shard_names_load_with_a_matching_index),
        CASE(an_index_that_lies_is_refused),
        CASE(without_an_index_there_must_be_one_file),
        CASE(strangers_beside_an_index_are_left_alone),
        CASE(tensors_must_match_the_table_one_to_one),
        CASE(what_the_reference_ignores_is_ignored_with_a_line),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "loader", cases, NULL);
}
