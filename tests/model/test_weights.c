/* weights: every tensor of the files arrives, bit for bit, at its rows of its weight; the tied head is one weight. */
#include "engine/model/weights.h"

#include "engine/io/loader.h"
#include "engine/log.h"
#include "engine/model/bind.h"
#include "tests/model/model_copy.h"

static struct checkpoint checkpoint;
static struct weight_bank bank;
static void *scratch;
static uint64_t scratch_bytes;

static void *memory(uint64_t bytes)
{
    return harness_memory((bytes + 4095) / 4096 * 4096);
}

static void open_bank(const char *folder, enum kernel_type type, enum load_format format)
{
    checkpoint_read(&checkpoint, &(struct checkpoint_source){.folder = folder});
    weights_place(&bank, &checkpoint, type);
    bank.base = memory(bank.bytes);
    scratch_bytes = weights_scratch_bytes(&checkpoint, 1);
    scratch = memory(scratch_bytes);
    weights_load(&bank, format, scratch, scratch_bytes, &team_serial);
}

static float bf16(const uint16_t *value)
{
    float wide;
    kernel_widen(&wide, value, TYPE_BF16, 1);
    return wide;
}

/* Element (row, column) of a tensor, where the bank has it. */
static float banked(const struct bind_place *place, uint32_t row, uint32_t column)
{
    uint32_t split = place->row->rest_slot != 0 ? checkpoint.dims[place->row->split] : UINT32_MAX;
    uint8_t slot = row < split ? place->row->slot : place->row->rest_slot;
    uint32_t at = row < split ? row + (place->row->at != NO_DIM ? checkpoint.dims[place->row->at] : 0) : row - split;
    if (bank.row[slot]->in == NO_DIM) {
        return weights_vector(&bank, slot, place->layer)[at];
    }
    struct packed_matrix matrix = weights_matrix(&bank, slot, place->layer);
    return packed_matrix_get(&matrix, at, column);
}

static void check_folder(const char *folder, enum kernel_type type)
{
    struct bind_place place = {.row = NULL};
    uint32_t wrong = 0;
    open_bank(folder, type, LOAD_AUTO);
    struct loader *loader = loader_open(&checkpoint, scratch, scratch_bytes);
    while (bind_next(&checkpoint, &place)) {
        enum tensor_type tensor_type;
        const uint16_t *tensor = loader_tensor(loader, place.index, &tensor_type);
        uint32_t out = bind_out(&checkpoint, place.row), in = bind_in(&checkpoint, place.row);
        CU_ASSERT_FATAL(tensor_type == TENSOR_BF16);
        for (uint32_t row = 0; row < out; row++) {
            for (uint32_t column = 0; column < in; column += 1 + in / 9) {
                wrong += bf16(&tensor[(size_t)row * in + column]) != banked(&place, row, column) ? 1 : 0;
            }
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    loader_close(loader);
}

static void tied_tensors_arrive_in_both_types(void)
{
    check_folder("tests/data/fixtures/models/q25vl-a", TYPE_BF16);
    check_folder("tests/data/fixtures/models/q25vl-a", TYPE_F32);
}

static void sharded_tensors_arrive(void)
{
    check_folder("tests/data/fixtures/models/q25vl-b", TYPE_BF16);
}

/* Rewrites a copy's file with all tensors in another type; `put` makes an element of it from the bf16 one. */
static void rewrite(struct model_copy *copy, const char *type, size_t element, void (*put)(void *out, uint16_t value))
{
    static struct tensor_entry entries[128];
    struct safetensors file = {.entries = entries, .capacity = 128};
    size_t count = 0, used = 0;
    char *bytes = copy_read(copy, "model.safetensors", &count), *made = memory(2 * count + 65536), *header = made + 8;
    CU_ASSERT_FATAL(safetensors_read(&file, bytes, count));
    uint64_t data = entries[0].begin, header_bytes = 32768;
    for (uint32_t i = 0; i < file.count; i++) {
        const struct tensor_entry *entry = &entries[i];
        used += (size_t)sprintf(header + used, "%s\"%.*s\":{\"dtype\":\"%s\",\"shape\":[", i == 0 ? "{" : ",",
                                (int)entry->name_bytes, entry->name, type);
        for (uint32_t axis = 0; axis < entry->rank; axis++) {
            used +=
                (size_t)sprintf(header + used, "%s%llu", axis > 0 ? "," : "", (unsigned long long)entry->shape[axis]);
        }
        used += (size_t)sprintf(header + used, "],\"data_offsets\":[%llu,%llu]}",
                                (unsigned long long)((entry->begin - data) / 2 * element),
                                (unsigned long long)((entry->end - data) / 2 * element));
    }
    used += (size_t)sprintf(header + used, "}");
    memset(header + used, ' ', header_bytes - used);
    memcpy(made, &header_bytes, 8);
    for (uint64_t i = 0; data + 2 * i < count; i++) {
        uint16_t value;
        memcpy(&value, bytes + data + 2 * i, 2);
        put(header + header_bytes + i * element, value);
    }
    copy_write(copy, "model.safetensors", made, 8 + header_bytes + (count - data) / 2 * element);
}

static void put_f32(void *out, uint16_t value)
{
    kernel_widen(out, &value, TYPE_BF16, 1);
}

/* 1.5 with the sign of the value. */
static void put_f16(void *out, uint16_t value)
{
    uint16_t half = (uint16_t)((value & 0x8000) | 0x3E00);
    memcpy(out, &half, 2);
}

static void float32_files_give_the_same_weights(void)
{
    static struct model_copy copy;
    open_bank("tests/data/fixtures/models/q25vl-a", TYPE_BF16, LOAD_AUTO);
    unsigned char *expected = bank.base;
    copy_open(&copy, "tests/data/fixtures/models/q25vl-a");
    rewrite(&copy, "F32", 4, put_f32);
    open_bank(copy.folder, TYPE_BF16, LOAD_AUTO);
    CU_ASSERT(memcmp(expected, bank.base, bank.bytes) == 0);
    copy_close(&copy);
}

static void float16_files_are_widened(void)
{
    static struct model_copy copy;
    struct bind_place place = {.row = NULL};
    copy_open(&copy, "tests/data/fixtures/models/q25vl-a");
    rewrite(&copy, "F16", 2, put_f16);
    open_bank(copy.folder, TYPE_F32, LOAD_AUTO);
    while (bind_next(&checkpoint, &place)) {
        float value = banked(&place, 0, bind_in(&checkpoint, place.row) - 1);
        CU_ASSERT(value == 1.5F || value == -1.5F);
    }
    copy_close(&copy);
}

static void a_tied_head_is_the_embedding(void)
{
    checkpoint_read(&checkpoint, &(struct checkpoint_source){.folder = "tests/data/fixtures/models/q25vl-a"});
    weights_place(&bank, &checkpoint, TYPE_BF16);
    uint64_t tied_bytes = bank.bytes;
    uint32_t shared = 0;
    for (uint8_t slot = 1; slot < WEIGHT_SLOTS_MAX; slot++) {
        shared +=
            bank.row[slot] != NULL && bank.row[slot]->tied_to != 0 && bank.at[slot] == bank.at[bank.row[slot]->tied_to]
                ? 1
                : 0;
    }
    CU_ASSERT_EQUAL(shared, 1);
    checkpoint.is_tied = false;
    weights_place(&bank, &checkpoint, TYPE_BF16);
    CU_ASSERT_EQUAL(bank.bytes - tied_bytes, packed_matrix_bytes(1088, 256, TYPE_BF16));
}

static void places_do_not_overlap(void)
{
    checkpoint_read(&checkpoint, &(struct checkpoint_source){.folder = "tests/data/models/Qwen2.5-VL-7B-Instruct"});
    weights_place(&bank, &checkpoint, TYPE_BF16);
    for (uint8_t a = 1; a < WEIGHT_SLOTS_MAX; a++) {
        for (uint8_t b = 1; b < a && bank.row[a] != NULL; b++) {
            CU_ASSERT(bank.row[b] == NULL || bank.at[a] != bank.at[b]);
        }
        CU_ASSERT(bank.row[a] == NULL || (bank.at[a] % 64 == 0 && bank.stride[a] % 64 == 0));
    }
    CU_ASSERT(bank.bytes > checkpoint.tensor_bytes &&
              bank.bytes < checkpoint.tensor_bytes + checkpoint.tensor_bytes / 50);
}

static void made_up_tensors_of_one_shape_are_equal(void)
{
    struct bind_place place = {.row = NULL}, first = {.row = NULL};
    float low = 1, high = -1;
    open_bank("tests/data/fixtures/models/q25vl-a", TYPE_BF16, LOAD_DUMMY);
    while (bind_next(&checkpoint, &place)) {
        if (strcmp(place.row->name, "model.layers.%d.mlp.up_proj.weight") != 0) {
            continue;
        }
        first = first.row == NULL ? place : first;
        for (uint32_t i = 0; i < 700; i++) {
            float value = banked(&place, i, i % 256);
            CU_ASSERT(value == banked(&first, i, i % 256));
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
    }
    CU_ASSERT(low >= -1e-3F && low < -9e-4F && high <= 1e-3F && high > 9e-4F);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(tied_tensors_arrive_in_both_types),      CASE(sharded_tensors_arrive),
        CASE(float32_files_give_the_same_weights),    CASE(float16_files_are_widened),
        CASE(a_tied_head_is_the_embedding),           CASE(places_do_not_overlap),
        CASE(made_up_tensors_of_one_shape_are_equal), {NULL, NULL},
    };
    log_set_level(LOG_ERROR);
    return harness_run(argc, argv, "weights", cases, NULL);
}
