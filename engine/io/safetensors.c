/* safetensors: the header of one file, checked against the file.
 *
 * Always true between calls: nothing is kept but what the caller holds; every offset that is handed out lies in the
 * file.
 */
#include "engine/io/safetensors.h"

#include "engine/json.h"

#include <assert.h>
#include <string.h>

enum { LENGTH_BYTES = 8 };

/* Element bytes of the format's types, so that sizes are checked for types that we do not load, too. */
static const struct {
    const char *name;
    uint32_t bits;
    enum tensor_type type;
} types[] = {
    {"BF16", 16, TENSOR_BF16},    {"F16", 16, TENSOR_F16},      {"F32", 32, TENSOR_F32},   {"F64", 64, TENSOR_OTHER},
    {"F8_E4M3", 8, TENSOR_OTHER}, {"F8_E5M2", 8, TENSOR_OTHER}, {"BOOL", 8, TENSOR_OTHER}, {"U8", 8, TENSOR_OTHER},
    {"I8", 8, TENSOR_OTHER},      {"U16", 16, TENSOR_OTHER},    {"I16", 16, TENSOR_OTHER}, {"U32", 32, TENSOR_OTHER},
    {"I32", 32, TENSOR_OTHER},    {"U64", 64, TENSOR_OTHER},    {"I64", 64, TENSOR_OTHER}, {"F8_E8M0", 8, TENSOR_OTHER},
    {"C64", 64, TENSOR_OTHER},    {"F4", 4, TENSOR_OTHER},
};

size_t tensor_type_bytes(enum tensor_type type)
{
    switch (type) {
    case TENSOR_BF16:
    case TENSOR_F16:
        return 2;
    case TENSOR_F32:
        return 4;
    case TENSOR_OTHER:
        break;
    }
    return 0;
}

static bool refuse(struct safetensors *file, const char *reason, const struct tensor_entry *entry)
{
    assert(reason != NULL);
    file->reason = reason;
    file->subject = entry != NULL ? entry->name : NULL;
    file->subject_bytes = entry != NULL ? entry->name_bytes : 0;
    return false;
}

static bool refuse_json(struct safetensors *file, const struct json_reader *reader, const struct tensor_entry *entry)
{
    return refuse(file, reader->reason != NULL ? reader->reason : "malformed JSON in the header", entry);
}

/* Reads one array of non-negative whole numbers. */
static bool read_numbers(struct json_reader *reader, uint64_t *numbers, uint32_t capacity, uint32_t *count)
{
    struct json_event event;

    assert(numbers != NULL && capacity > 0);
    *count = 0;
    if (json_next(reader, &event) != ERR_OK || event.kind != JSON_ARRAY_BEGIN) {
        return false;
    }
    for (;;) {
        int64_t value = 0;
        if (json_next(reader, &event) != ERR_OK) {
            return false;
        }
        if (event.kind == JSON_ARRAY_END) {
            return true;
        }
        if (event.kind != JSON_NUMBER || *count == capacity || !json_number_i64(event.text, event.bytes, &value) ||
            value < 0) {
            return false;
        }
        numbers[(*count)++] = (uint64_t)value;
    }
}

/* Bits of an element of the named type, or 0. */
static uint32_t find_type(const struct json_event *event, struct tensor_entry *entry)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (json_event_is(event, types[i].name)) {
            memcpy(entry->type_name, types[i].name, strlen(types[i].name) + 1);
            entry->type = types[i].type;
            return types[i].bits;
        }
    }
    return 0;
}

static bool check_size(struct safetensors *file, const struct tensor_entry *entry, uint32_t bits)
{
    uint64_t total = bits;

    assert(bits > 0 && entry->begin <= entry->end);
    assert(entry->rank <= SAFETENSORS_RANK_MAX);
    for (uint32_t i = 0; i < entry->rank; i++) {
        if (__builtin_mul_overflow(total, entry->shape[i], &total)) {
            return refuse(file, "its shape overflows", entry);
        }
    }
    if (total % 8 != 0 || total / 8 != entry->end - entry->begin) {
        return refuse(file, "its data_offsets do not fit its shape and dtype", entry);
    }
    if (tensor_type_bytes(entry->type) != 0 && entry->begin % tensor_type_bytes(entry->type) != 0) {
        return refuse(file, "its data is not aligned to its dtype", entry);
    }
    return true;
}

/* The value of one name: {"dtype": …, "shape": […], "data_offsets": [begin, end]}. */
static bool read_entry(struct safetensors *file, struct json_reader *reader, struct tensor_entry *entry,
                       uint64_t data_at, uint64_t data_bytes)
{
    struct json_event event;
    uint32_t bits = 0, offset_count = 0;
    uint64_t offsets[2] = {0, 0};
    bool has_shape = false;

    if (json_next(reader, &event) != ERR_OK) {
        return refuse_json(file, reader, entry);
    }
    if (event.kind != JSON_OBJECT_BEGIN) {
        return refuse(file, "its description is not an object", entry);
    }
    for (;;) {
        if (json_next(reader, &event) != ERR_OK) {
            return refuse_json(file, reader, entry);
        }
        if (event.kind == JSON_OBJECT_END) {
            break;
        }
        assert(event.kind == JSON_KEY);
        if (json_event_is(&event, "dtype")) {
            if (json_next(reader, &event) != ERR_OK || event.kind != JSON_STRING ||
                (bits = find_type(&event, entry)) == 0) {
                return refuse(file, "its dtype is unknown", entry);
            }
        } else if (json_event_is(&event, "shape")) {
            if (!read_numbers(reader, entry->shape, SAFETENSORS_RANK_MAX, &entry->rank)) {
                return refuse(file, "its shape is not a list of at most 6 whole numbers", entry);
            }
            has_shape = true;
        } else if (json_event_is(&event, "data_offsets")) {
            if (!read_numbers(reader, offsets, 2, &offset_count) || offset_count != 2) {
                return refuse(file, "its data_offsets are not two whole numbers", entry);
            }
        } else {
            return refuse(file, "its description has an unknown key", entry);
        }
    }
    if (bits == 0 || !has_shape || offset_count != 2) {
        return refuse(file, "its description lacks dtype, shape or data_offsets", entry);
    }
    if (offsets[0] > offsets[1] || offsets[1] > data_bytes) {
        return refuse(file, "its data_offsets lie outside the file (is it cut off?)", entry);
    }
    entry->begin = data_at + offsets[0];
    entry->end = data_at + offsets[1];
    return check_size(file, entry, bits);
}

static bool read_header(struct safetensors *file, struct json_reader *reader, uint64_t data_at, uint64_t data_bytes)
{
    struct json_event event;

    if (json_next(reader, &event) != ERR_OK) {
        return refuse_json(file, reader, NULL);
    }
    if (event.kind != JSON_OBJECT_BEGIN) {
        return refuse(file, "the header is not a JSON object", NULL);
    }
    for (;;) {
        if (json_next(reader, &event) != ERR_OK) {
            return refuse_json(file, reader, NULL);
        }
        if (event.kind == JSON_OBJECT_END) {
            break;
        }
        assert(event.kind == JSON_KEY);
        if (json_event_is(&event, "__metadata__")) {
            if (json_skip(reader) != ERR_OK) {
                return refuse_json(file, reader, NULL);
            }
            continue;
        }
        struct tensor_entry entry = {.name = event.text, .name_bytes = (uint32_t)event.bytes};
        if (file->count == file->capacity) {
            return refuse(file, "the file holds more tensors than the model has; the first too many", &entry);
        }
        if (!read_entry(file, reader, &entry, data_at, data_bytes)) {
            return false;
        }
        file->entries[file->count++] = entry;
    }
    if (json_next(reader, &event) != ERR_OK) {
        return refuse_json(file, reader, NULL);
    }
    return true;
}

static bool is_before(const struct tensor_entry *a, const struct tensor_entry *b)
{
    /* Empty tensors share their begin with the next one and must come first. */
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
}

/* Heap sort: in place, without recursion, and no worse on hostile orders. */
static void sift_down(struct tensor_entry *entries, uint32_t root, uint32_t count)
{
    for (;;) {
        uint32_t child = 2 * root + 1;
        if (child >= count) {
            return;
        }
        if (child + 1 < count && is_before(&entries[child], &entries[child + 1])) {
            child++;
        }
        if (!is_before(&entries[root], &entries[child])) {
            return;
        }
        struct tensor_entry swap = entries[root];
        entries[root] = entries[child];
        entries[child] = swap;
        root = child;
    }
}

static void sort_entries(struct tensor_entry *entries, uint32_t count)
{
    for (uint32_t i = count / 2; i > 0; i--) {
        sift_down(entries, i - 1, count);
    }
    for (uint32_t i = count; i > 1; i--) {
        struct tensor_entry swap = entries[0];
        entries[0] = entries[i - 1];
        entries[i - 1] = swap;
        sift_down(entries, 0, i - 1);
    }
}

static bool check_cover(struct safetensors *file, uint64_t data_at, uint64_t length)
{
    uint64_t expected = data_at;

    assert(data_at >= LENGTH_BYTES && data_at <= length);
    for (uint32_t i = 0; i < file->count; i++) {
        const struct tensor_entry *entry = &file->entries[i];
        if (entry->begin < expected) {
            return refuse(file, "its data overlaps another tensor's", entry);
        }
        if (entry->begin > expected) {
            return refuse(file, "there is a hole in the file before its data", entry);
        }
        expected = entry->end;
    }
    if (expected != length) {
        return refuse(file, "the file goes on behind the last tensor", NULL);
    }
    return true;
}

bool safetensors_read(struct safetensors *file, char *bytes, size_t length)
{
    uint64_t header_bytes = 0;
    struct json_reader reader;

    assert(file->entries != NULL && file->capacity > 0);
    assert(bytes != NULL || length == 0);
    file->count = 0;
    file->reason = NULL;
    file->subject = NULL;
    if (length < LENGTH_BYTES + 2) {
        return refuse(file, "the file is too short to be a safetensors file", NULL);
    }
    for (uint32_t i = LENGTH_BYTES; i > 0; i--) {
        header_bytes = header_bytes << 8 | (unsigned char)bytes[i - 1];
    }
    if (header_bytes > SAFETENSORS_HEADER_BYTES_MAX || header_bytes > length - LENGTH_BYTES) {
        return refuse(file, "its header's length is out of range (is the file cut off?)", NULL);
    }

    uint64_t data_at = LENGTH_BYTES + header_bytes;
    json_open(&reader, bytes + LENGTH_BYTES, (size_t)header_bytes);
    if (!read_header(file, &reader, data_at, length - data_at)) {
        return false;
    }
    sort_entries(file->entries, file->count);
    return check_cover(file, data_at, length);
}
