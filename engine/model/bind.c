/* bind: names and shapes of the tensor table against those of the files.
 *
 * Always true: a tensor's number is its place in the table's order, so a bitmap over the numbers shows what is missing
 * and what comes twice.
 */
#include "engine/model/bind.h"

#include "engine/model/dims.h"
#include "engine/start.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    LAYER_DIGITS_MAX = 4,
    SHAPE_AXES = sizeof(((struct tensor_row *)0)->shape) / sizeof(enum dim),
};

uint32_t bind_repeat(const struct checkpoint *checkpoint, const struct tensor_row *row)
{
    assert(checkpoint->arch != NULL && row->name != NULL);
    if (row->presence == ABSENT_IF_TIED && checkpoint->is_tied) {
        return 0;
    }
    switch (row->repeat) {
    case EACH_LAYER:
        return checkpoint->dims[LAYERS];
    case EACH_BLOCK:
        return checkpoint->dims[V_BLOCKS];
    case ONCE:
        break;
    }
    return 1;
}

uint32_t bind_out(const struct checkpoint *checkpoint, const struct tensor_row *row)
{
    assert(row->shape[0] != NO_DIM);
    assert(checkpoint->dims[row->shape[0]] > 0);
    return checkpoint->dims[row->shape[0]];
}

uint32_t bind_in(const struct checkpoint *checkpoint, const struct tensor_row *row)
{
    uint64_t in = 1;

    for (uint32_t axis = 1; axis < SHAPE_AXES && row->shape[axis] != NO_DIM; axis++) {
        in *= checkpoint->dims[row->shape[axis]];
        assert(in <= UINT32_MAX);
    }
    return (uint32_t)in;
}

void bind_measure(const struct checkpoint *checkpoint, uint32_t *tensor_count, uint64_t *tensor_bytes)
{
    *tensor_count = 0;
    *tensor_bytes = 0;
    for (const struct tensor_row *row = checkpoint->arch->tensors; row->name != NULL; row++) {
        uint32_t repeat = bind_repeat(checkpoint, row);
        *tensor_count += repeat;
        *tensor_bytes += 2 * (uint64_t)repeat * bind_out(checkpoint, row) * bind_in(checkpoint, row);
    }
}

bool bind_next(const struct checkpoint *checkpoint, struct bind_place *place)
{
    assert(checkpoint->arch != NULL);
    assert(place->row == NULL || place->row->name != NULL); /* not called again behind the last */
    if (place->row == NULL) {
        *place = (struct bind_place){checkpoint->arch->tensors, 0, 0};
    } else {
        place->layer++;
        place->index++;
    }
    while (place->row->name != NULL && place->layer >= bind_repeat(checkpoint, place->row)) {
        place->row++;
        place->layer = 0;
    }
    return place->row->name != NULL;
}

void bind_name(const struct bind_place *place, char name[TENSOR_NAME_BYTES_MAX])
{
    const char *hole = strstr(place->row->name, "%d");

    assert(strlen(place->row->name) + LAYER_DIGITS_MAX < TENSOR_NAME_BYTES_MAX);
    assert(hole != NULL || place->layer == 0);
    if (hole == NULL) {
        (void)snprintf(name, TENSOR_NAME_BYTES_MAX, "%s", place->row->name);
    } else {
        (void)snprintf(name, TENSOR_NAME_BYTES_MAX, "%.*s%u%s", (int)(hole - place->row->name), place->row->name,
                       place->layer, hole + 2);
    }
}

/* A decimal layer number without leading zeros at the front of `text`; returns its digits, 0 if there is none. */
static size_t parse_layer(const char *text, size_t bytes, uint32_t *layer)
{
    size_t digits = 0;

    *layer = 0;
    while (digits < bytes && digits < LAYER_DIGITS_MAX && text[digits] >= '0' && text[digits] <= '9') {
        *layer = *layer * 10 + (uint32_t)(text[digits] - '0');
        digits++;
    }
    return digits > 1 && text[0] == '0' ? 0 : digits;
}

static bool match_name(const char *pattern, const char *name, size_t bytes, uint32_t *layer)
{
    const char *hole = strstr(pattern, "%d");
    size_t head = hole != NULL ? (size_t)(hole - pattern) : strlen(pattern);

    *layer = 0;
    if (bytes < head || memcmp(name, pattern, head) != 0) {
        return false;
    }
    if (hole == NULL) {
        return bytes == head;
    }
    size_t digits = parse_layer(name + head, bytes - head, layer);
    size_t tail = strlen(hole + 2);
    return digits > 0 && bytes == head + digits + tail && memcmp(name + head + digits, hole + 2, tail) == 0;
}

/* Writes the name as published: another tool's prefix is replaced. False if it is too long to be one of ours. */
static bool normalize(const struct arch *arch, const char *name, size_t bytes, char *out, size_t *out_bytes)
{
    for (const struct prefix_row *row = arch->prefixes; row->other != NULL; row++) {
        size_t other = strlen(row->other), published = strlen(row->published);
        if (bytes >= other && memcmp(name, row->other, other) == 0) {
            if (published + bytes - other > TENSOR_NAME_BYTES_MAX) {
                return false;
            }
            memcpy(out, row->published, published);
            memcpy(out + published, name + other, bytes - other);
            *out_bytes = published + bytes - other;
            return true;
        }
    }
    if (bytes > TENSOR_NAME_BYTES_MAX) {
        return false;
    }
    assert(bytes == 0 || name != NULL);
    memcpy(out, name, bytes);
    *out_bytes = bytes;
    return true;
}

static bool is_ignored(const struct arch *arch, const char *name, size_t bytes)
{
    for (const char *const *suffix = arch->ignored_suffixes; *suffix != NULL; suffix++) {
        size_t length = strlen(*suffix);
        if (bytes >= length && memcmp(name + bytes - length, *suffix, length) == 0) {
            return true;
        }
    }
    return false;
}

enum bind_kind bind_find(const struct checkpoint *checkpoint, const char *name, size_t name_bytes,
                         struct bind_place *place)
{
    char published[TENSOR_NAME_BYTES_MAX];
    size_t bytes = 0;
    uint32_t first = 0;

    assert(checkpoint->arch != NULL && place != NULL);
    if (!normalize(checkpoint->arch, name, name_bytes, published, &bytes)) {
        return BIND_UNKNOWN;
    }
    for (const struct tensor_row *row = checkpoint->arch->tensors; row->name != NULL; row++) {
        uint32_t repeat = bind_repeat(checkpoint, row), layer = 0;
        if (match_name(row->name, published, bytes, &layer)) {
            if (repeat == 0) {
                return BIND_IGNORED;
            }
            *place = (struct bind_place){row, layer, first + layer};
            return layer < repeat ? BIND_WEIGHT : BIND_UNKNOWN;
        }
        first += repeat;
    }
    return is_ignored(checkpoint->arch, published, bytes) ? BIND_IGNORED : BIND_UNKNOWN;
}

void bind_check(const struct checkpoint *checkpoint, const struct bind_place *place, const struct tensor_entry *entry,
                const char *file)
{
    uint32_t rank = 0;
    int name_bytes = (int)entry->name_bytes;

    assert(place->row != NULL && file != NULL);
    while (rank < SHAPE_AXES && place->row->shape[rank] != NO_DIM) {
        rank++;
    }
    if (entry->type == TENSOR_OTHER) {
        start_refuse(START_BAD_MODEL, "%s: %.*s has dtype %s; expected BF16, F16 or F32", file, name_bytes, entry->name,
                     entry->type_name);
    }
    if (entry->rank != rank) {
        start_refuse(START_BAD_MODEL, "%s: %.*s has %u axes; expected %u", file, name_bytes, entry->name, entry->rank,
                     rank);
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        uint32_t expected = checkpoint->dims[place->row->shape[axis]];
        if (entry->shape[axis] != expected) {
            start_refuse(START_BAD_MODEL, "%s: %.*s axis %u is %llu; expected %s = %u", file, name_bytes, entry->name,
                         axis, (unsigned long long)entry->shape[axis], dims_name(place->row->shape[axis]), expected);
        }
    }
}
