/* bind: every tensor name of a published index has its place and no place is left over; names that are nearly right
 * have none.
 */
#include "engine/model/bind.h"

#include "engine/json.h"
#include "tests/model/model_copy.h"

#define REAL "tests/data/models/Qwen2.5-VL-7B-Instruct"

enum { TENSORS = 729 };

static struct checkpoint checkpoint;

static enum bind_kind find(const char *name, struct bind_place *place)
{
    return bind_find(&checkpoint, name, strlen(name), place);
}

static void names_and_numbers_are_a_bijection(void)
{
    bool seen[TENSORS] = {false};
    struct bind_place place = {.row = NULL}, found;
    char name[TENSOR_NAME_BYTES_MAX];
    uint32_t count = 0;
    while (bind_next(&checkpoint, &place)) {
        bind_name(&place, name);
        CU_ASSERT_FATAL(find(name, &found) == BIND_WEIGHT);
        CU_ASSERT(found.index == place.index && found.row == place.row && found.layer == place.layer);
        CU_ASSERT_FATAL(place.index == count && !seen[place.index]);
        seen[place.index] = true;
        count++;
    }
    CU_ASSERT_EQUAL(count, TENSORS);
}

static void the_published_index_is_the_table(void)
{
    static char index[128 * 1024];
    struct json_reader reader;
    struct json_event event;
    bool seen[TENSORS] = {false};
    uint32_t count = 0;
    long length = harness_read(REAL "/model.safetensors.index.json", index, sizeof index);
    CU_ASSERT_FATAL(length > 0);
    json_open(&reader, index, (size_t)length);
    while (json_next(&reader, &event) == ERR_OK && event.kind != JSON_END) {
        struct bind_place place;
        if (event.kind != JSON_KEY || memchr(event.text, '.', event.bytes) == NULL) {
            continue;
        }
        CU_ASSERT_FATAL(bind_find(&checkpoint, event.text, event.bytes, &place) == BIND_WEIGHT);
        CU_ASSERT(!seen[place.index]);
        seen[place.index] = true;
        count++;
    }
    CU_ASSERT_EQUAL(count, TENSORS);
}

static void other_prefixes_are_the_same_tensors(void)
{
    struct bind_place a, b;
    CU_ASSERT(find("model.layers.3.mlp.up_proj.weight", &a) == BIND_WEIGHT);
    CU_ASSERT(find("model.language_model.layers.3.mlp.up_proj.weight", &b) == BIND_WEIGHT && a.index == b.index);
    CU_ASSERT(find("visual.blocks.31.attn.qkv.bias", &a) == BIND_WEIGHT && a.layer == 31);
    CU_ASSERT(find("model.visual.blocks.31.attn.qkv.bias", &b) == BIND_WEIGHT && a.index == b.index);
}

static void near_misses_are_unknown(void)
{
    static const char *const names[] = {
        "",
        "model",
        "model.layers.28.mlp.up_proj.weight",
        "model.layers.03.mlp.up_proj.weight",
        "model.layers..mlp.up_proj.weight",
        "model.layers.-1.mlp.up_proj.weight",
        "model.layers.3.mlp.up_proj.weights",
        "model.layers.3.mlp.up_proj",
        "model.layers.3.self_attn.o_proj.bias",
        "visual.blocks.32.norm1.weight",
        "model.layers.99999999999.mlp.up_proj.weight",
        "visual.patch_embed.proj.bias",
        "lm_head.bias",
    };
    struct bind_place place;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CU_ASSERT(find(names[i], &place) == BIND_UNKNOWN);
    }
    char longest[400];
    memset(longest, 'm', sizeof longest);
    CU_ASSERT(bind_find(&checkpoint, longest, sizeof longest, &place) == BIND_UNKNOWN);
    memcpy(longest, "model.visual.", 13);
    CU_ASSERT(bind_find(&checkpoint, longest, sizeof longest, &place) == BIND_UNKNOWN);
}

static void what_the_reference_ignores_is_ignored(void)
{
    struct bind_place place;
    CU_ASSERT(find("model.layers.0.self_attn.rotary_emb.inv_freq", &place) == BIND_IGNORED);
    CU_ASSERT(find("visual.rotary_pos_emb.inv_freq", &place) == BIND_IGNORED);
    CU_ASSERT(find("lm_head.weight", &place) == BIND_WEIGHT);
    checkpoint.is_tied = true;
    CU_ASSERT(find("lm_head.weight", &place) == BIND_IGNORED);
    uint32_t count = 0;
    uint64_t bytes = 0;
    bind_measure(&checkpoint, &count, &bytes);
    CU_ASSERT_EQUAL(count, TENSORS - 1);
    checkpoint.is_tied = false;
}

static struct tensor_entry entry;

static void check_entry(const char *folder)
{
    struct bind_place place;
    (void)folder;
    if (bind_find(&checkpoint, entry.name, entry.name_bytes, &place) == BIND_WEIGHT) {
        bind_check(&checkpoint, &place, &entry, "model-00001.safetensors");
    }
}

static void shapes_and_types_are_refused_by_axis(void)
{
    static struct model_copy copy;
    const char name[] = "model.layers.0.mlp.down_proj.weight";
    entry = (struct tensor_entry){
        .name = name, .name_bytes = sizeof name - 1, .rank = 2, .shape = {3584, 18944}, .type = TENSOR_F16};
    copy_try(&copy, check_entry);
    CU_ASSERT(SAYS(&copy, 0, ""));
    entry.shape[1] = 18940;
    copy_try(&copy, check_entry);
    CU_ASSERT(SAYS(&copy, 4, "model-00001", name, "axis 1 is 18940", "FFN = 18944"));
    entry.rank = 3;
    copy_try(&copy, check_entry);
    CU_ASSERT(SAYS(&copy, 4, name, "3 axes", "expected 2"));
    entry.type = TENSOR_OTHER;
    memcpy(entry.type_name, "F8_E4M3", 8);
    copy_try(&copy, check_entry);
    CU_ASSERT(SAYS(&copy, 4, name, "F8_E4M3"));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(names_and_numbers_are_a_bijection),
        CASE(the_published_index_is_the_table),
        CASE(other_prefixes_are_the_same_tensors),
        CASE(near_misses_are_unknown),
        CASE(what_the_reference_ignores_is_ignored),
        CASE(shapes_and_types_are_refused_by_axis),
        {NULL, NULL},
    };
    checkpoint_read(&checkpoint, &(struct checkpoint_source){.folder = REAL});
    return harness_run(argc, argv, "bind", cases, NULL);
}
