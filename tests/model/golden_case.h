/* golden_case: reads the fixtures' expected values: cases/MODEL.json and the arrays of cases/MODEL.safetensors. */
#ifndef TESTS_MODEL_GOLDEN_CASE_H
#define TESTS_MODEL_GOLDEN_CASE_H

#include "engine/io/safetensors.h"
#include "engine/json.h"
#include "pools/domain.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { GOLDEN_ENTRIES_MAX = 1024, GOLDEN_PICTURES_MAX = 8, GOLDEN_CASES_MAX = 32 };

struct golden_arrays {
    struct safetensors file;
    struct tensor_entry entries[GOLDEN_ENTRIES_MAX];
    char *map;
    uint64_t map_bytes;
};

struct golden_picture {
    char path[160]; /* the resized PNG, relative to the fixtures' folder */
    uint32_t grid_h, grid_w, token_count;
};

struct golden_case {
    char name[48];
    struct json_span prompt; /* rendered; still escaped */
    uint32_t picture_count;
    struct golden_picture pictures[GOLDEN_PICTURES_MAX];
};

static inline bool golden_open(struct golden_arrays *arrays, const char *path)
{
    arrays->map = domain_file_map(path, &arrays->map_bytes);
    arrays->file = (struct safetensors){.entries = arrays->entries, .capacity = GOLDEN_ENTRIES_MAX};
    return arrays->map != NULL && safetensors_read(&arrays->file, arrays->map, (size_t)arrays->map_bytes);
}

/* The array CASE/NAME (or NAME alone for case_name NULL) and its number of elements; NULL if there is none. */
static inline const void *golden_find(const struct golden_arrays *arrays, const char *case_name, const char *name,
                                      uint32_t *count)
{
    size_t head = case_name != NULL ? strlen(case_name) + 1 : 0, tail = strlen(name);
    for (uint32_t i = 0; i < arrays->file.count; i++) {
        const struct tensor_entry *entry = &arrays->entries[i];
        if (entry->name_bytes == head + tail && memcmp(entry->name + head, name, tail) == 0 &&
            (head == 0 || (memcmp(entry->name, case_name, head - 1) == 0 && entry->name[head - 1] == '/'))) {
            *count = (uint32_t)((entry->end - entry->begin) / 4); /* i32 or f32 */
            return arrays->map + entry->begin;
        }
    }
    *count = 0;
    return NULL;
}

static inline void golden_next(struct json_reader *reader, struct json_event *event)
{
    enum err err = json_next(reader, event);
    assert(err == ERR_OK);
    (void)err;
}

static inline void golden_skip(struct json_reader *reader)
{
    enum err err = json_skip(reader);
    assert(err == ERR_OK);
    (void)err;
}

static inline uint32_t golden_number(struct json_reader *reader)
{
    struct json_event event;
    int64_t number = 0;
    golden_next(reader, &event);
    bool is_number = json_number_i64(event.text, event.bytes, &number);
    assert(is_number && number >= 0);
    (void)is_number;
    return (uint32_t)number;
}

static inline void golden_read_picture(struct json_reader *reader, struct golden_picture *picture)
{
    struct json_event event;
    for (golden_next(reader, &event); event.kind == JSON_KEY; golden_next(reader, &event)) {
        if (json_event_is(&event, "resized_png")) {
            golden_next(reader, &event);
            const char *slash = memchr(event.text, '/', event.bytes); /* behind "fixtures" */
            assert(slash != NULL);
            (void)snprintf(picture->path, sizeof picture->path, "%.*s",
                           (int)(event.bytes - (size_t)(slash + 1 - event.text)), slash + 1);
        } else if (json_event_is(&event, "grid_thw")) {
            golden_next(reader, &event);
            (void)golden_number(reader);
            picture->grid_h = golden_number(reader);
            picture->grid_w = golden_number(reader);
            golden_next(reader, &event);
        } else if (json_event_is(&event, "tokens")) {
            picture->token_count = golden_number(reader);
        } else {
            golden_skip(reader);
        }
    }
}

static inline void golden_read_case(struct json_reader *reader, struct golden_case *golden)
{
    struct json_event event;
    *golden = (struct golden_case){.picture_count = 0};
    for (golden_next(reader, &event); event.kind == JSON_KEY; golden_next(reader, &event)) {
        if (json_event_is(&event, "name")) {
            golden_next(reader, &event);
            (void)snprintf(golden->name, sizeof golden->name, "%.*s", (int)event.bytes, event.text);
        } else if (json_event_is(&event, "prompt")) {
            golden_next(reader, &event);
            golden->prompt = (struct json_span){event.text, event.bytes};
        } else if (json_event_is(&event, "images")) {
            golden_next(reader, &event);
            for (golden_next(reader, &event); event.kind == JSON_OBJECT_BEGIN; golden_next(reader, &event)) {
                assert(golden->picture_count < GOLDEN_PICTURES_MAX);
                golden_read_picture(reader, &golden->pictures[golden->picture_count++]);
            }
        } else {
            golden_skip(reader);
        }
    }
}

/* Reads all cases of the file; returns their number, 0 if the file is missing. The file stays mapped. */
static inline uint32_t golden_read(const char *path, struct golden_case *cases)
{
    uint64_t bytes = 0;
    struct json_reader reader;
    struct json_event event;
    uint32_t count = 0;
    char *text = domain_file_map(path, &bytes);

    if (text == NULL) {
        return 0;
    }
    json_open_raw(&reader, text, (size_t)bytes);
    golden_next(&reader, &event);
    for (golden_next(&reader, &event); event.kind == JSON_KEY; golden_next(&reader, &event)) {
        if (!json_event_is(&event, "cases")) {
            golden_skip(&reader);
            continue;
        }
        golden_next(&reader, &event);
        for (golden_next(&reader, &event); event.kind == JSON_OBJECT_BEGIN; golden_next(&reader, &event)) {
            assert(count < GOLDEN_CASES_MAX);
            golden_read_case(&reader, &cases[count++]);
        }
    }
    return count;
}

#endif
