/* safetensors: real files are read; every way in which a header can lie about its file is refused with a reason. */
#include "engine/io/safetensors.h"

#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

enum { ENTRIES_MAX = 128, FILE_BYTES_MAX = 16 * 1024 * 1024 };

static struct tensor_entry entries[ENTRIES_MAX];
static char *room;
static size_t shift_bytes; /* data begins that far behind a multiple of 8 */

static struct safetensors fresh(void)
{
    return (struct safetensors){.entries = entries, .capacity = ENTRIES_MAX};
}

/* Reads a file made of `header` and `data_bytes` zeros; returns the reason, or NULL if it was taken. */
static const char *read_made(struct safetensors *file, const char *header, size_t data_bytes)
{
    size_t length = strlen(header);
    room = room != NULL ? room : harness_memory(FILE_BYTES_MAX);
    size_t padded = (length + 7) / 8 * 8 + shift_bytes;
    memset(room, ' ', 8 + padded);
    memset(room + 8 + padded, 0, data_bytes);
    for (uint32_t i = 0; i < 8; i++) {
        room[i] = (char)(padded >> (8 * i) & 0xFF);
    }
    memcpy(room + 8, header, length);
    *file = fresh();
    return safetensors_read(file, room, 8 + padded + data_bytes) ? NULL : file->reason;
}

static bool refuses(const char *header, size_t data_bytes, const char *part)
{
    struct safetensors file;
    const char *reason = read_made(&file, header, data_bytes);
    bool is_said = reason != NULL && strstr(reason, part) != NULL;
    if (!is_said) {
        (void)fprintf(stderr, "%s: %s\n", header, reason != NULL ? reason : "taken");
    }
    return is_said;
}

static void a_real_file_is_covered_in_order(void)
{
    struct safetensors file = fresh();
    room = room != NULL ? room : harness_memory(FILE_BYTES_MAX);
    long length = harness_read("tests/data/fixtures/models/q25vl-a/model.safetensors", room, FILE_BYTES_MAX);
    CU_ASSERT_FATAL(length > 0);
    CU_ASSERT_FATAL(safetensors_read(&file, room, (size_t)length));
    CU_ASSERT_EQUAL(file.count, 80);
    CU_ASSERT_EQUAL(entries[file.count - 1].end, (uint64_t)length);
    for (uint32_t i = 0; i < file.count; i++) {
        CU_ASSERT(entries[i].type == TENSOR_BF16 && entries[i].rank >= 1);
        CU_ASSERT(i == 0 || entries[i].begin == entries[i - 1].end);
    }
}

static void every_cut_of_a_real_file_is_refused(void)
{
    static char copy[70000];
    room = room != NULL ? room : harness_memory(FILE_BYTES_MAX);
    long length = harness_read("tests/data/fixtures/models/q25vl-a/model.safetensors", room, FILE_BYTES_MAX);
    for (size_t cut = 0; cut < sizeof copy; cut += cut < 64 ? 1 : 997) {
        struct safetensors file = fresh();
        memcpy(copy, room, cut);
        CU_ASSERT_FALSE(safetensors_read(&file, copy, cut));
        CU_ASSERT_PTR_NOT_NULL(file.reason);
    }
    struct safetensors file = fresh();
    CU_ASSERT_FALSE(safetensors_read(&file, room, (size_t)length - 1));
    CU_ASSERT_PTR_NOT_NULL(file.subject);
}

static void types_and_metadata_are_read(void)
{
    struct safetensors file;
    CU_ASSERT_PTR_NULL(read_made(&file,
                                 "{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4,28]},"
                                 "\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]},"
                                 "\"c\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[28,36]},"
                                 "\"\\u0064\":{\"dtype\":\"F8_E4M3\",\"shape\":[0,9],\"data_offsets\":[28,28]}}   ",
                                 36));
    CU_ASSERT_EQUAL(file.count, 4);
    CU_ASSERT(entries[0].type == TENSOR_F16 && entries[1].type == TENSOR_F32 && entries[1].shape[1] == 3);
    CU_ASSERT(entries[2].type == TENSOR_OTHER && entries[2].name[0] == 'd'); /* empty: before its neighbour */
    CU_ASSERT(entries[3].rank == 0 && strcmp(entries[3].type_name, "I64") == 0);
}

static void lengths_out_of_range_are_refused(void)
{
    char bytes[32] = {0};
    struct safetensors file = fresh();
    CU_ASSERT_FALSE(safetensors_read(&file, bytes, 0));
    CU_ASSERT_FALSE(safetensors_read(&file, bytes, 9));
    bytes[7] = 0x10; /* 2^60 */
    CU_ASSERT_FALSE(safetensors_read(&file, bytes, sizeof bytes));
    CU_ASSERT_PTR_NOT_NULL(strstr(file.reason, "length"));
    memset(bytes, 0xFF, 8);
    CU_ASSERT_FALSE(safetensors_read(&file, bytes, sizeof bytes));
}

static void lies_about_offsets_are_refused(void)
{
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "outside"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 12, "goes on"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, "hole"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "outside"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "do not fit"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                      8, "overlaps"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,2],\"data_offsets\":[0,8]}}", 8,
                      "overflows"));
    shift_bytes = 1;
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "not aligned"));
    shift_bytes = 0;
}

static void malformed_headers_are_refused(void)
{
    CU_ASSERT(refuses("[1]", 0, "not a JSON object"));
    CU_ASSERT(refuses("{\"a\":1}", 0, "not an object"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"Q4\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype is unknown"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "shape"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "shape"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4, "shape"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "two whole numbers"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "lacks"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, "unknown key"));
    struct safetensors file;
    CU_ASSERT_PTR_NOT_NULL(read_made(&file, "{\"a\":{\"dtype\"", 4));
    CU_ASSERT_PTR_NOT_NULL(read_made(&file, "{} x", 0));
}

static void more_tensors_than_room_are_refused(void)
{
    struct safetensors file = {.entries = entries, .capacity = 1};
    const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                          "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}";
    char bytes[sizeof header + 16] = {(char)(sizeof header - 1)};
    memcpy(bytes + 8, header, sizeof header - 1);
    CU_ASSERT_FALSE(safetensors_read(&file, bytes, 8 + sizeof header - 1 + 2));
    CU_ASSERT_PTR_NOT_NULL(strstr(file.reason, "more tensors"));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_real_file_is_covered_in_order),    CASE(every_cut_of_a_real_file_is_refused),
        CASE(types_and_metadata_are_read),        CASE(lengths_out_of_range_are_refused),
        CASE(lies_about_offsets_are_refused),     CASE(malformed_headers_are_refused),
        CASE(more_tensors_than_room_are_refused), {NULL, NULL},
    };
    return harness_run(argc, argv, "safetensors", cases, NULL);
}
