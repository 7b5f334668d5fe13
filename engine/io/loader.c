/* loader: the weight files of a model folder.
 *
 * Always true: a tensor is bound at most once, so the count of bound tensors tells whether the table is complete.
 */
#include "engine/io/loader.h"

#include "engine/io/folder.h"
#include "engine/json.h"
#include "engine/log.h"
#include "engine/model/bind.h"
#include "engine/start.h"
#include "pools/domain.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NO_SHARD = UINT16_MAX };

static const char INDEX_NAME[] = "model.safetensors.index.json";
static const char SINGLE_NAME[] = "model.safetensors";

struct shard {
    char name[FOLDER_NAME_BYTES_MAX];
    char *map;
    uint64_t map_bytes;
};

/* Where a tensor of the table lies. */
struct bound {
    uint64_t begin;
    uint16_t shard;         /* NO_SHARD: not found yet */
    uint16_t indexed_shard; /* that the index names; NO_SHARD: none */
    uint32_t type;          /* enum tensor_type */
};

struct loader {
    const struct checkpoint *checkpoint;
    struct shard *shards;         /* [SHARDS_MAX] */
    struct bound *bound;          /* [tensor_count] */
    struct tensor_entry *entries; /* of one shard at a time: [entry_capacity] */
    uint32_t shard_count;
    uint32_t entry_capacity;
    uint32_t bound_count;
    uint64_t file_bytes;
    bool has_index;
};

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) & ~UINT64_C(63);
}

uint64_t loader_bytes(const struct checkpoint *checkpoint)
{
    uint64_t tensors = checkpoint->tensor_count;

    return aligned(sizeof(struct loader)) + aligned(SHARDS_MAX * sizeof(struct shard)) +
           aligned(tensors * sizeof(struct bound)) +
           aligned((tensors + IGNORED_TENSORS_MAX) * sizeof(struct tensor_entry));
}

static void *map_file(const struct loader *loader, const char *name, uint64_t *bytes)
{
    char path[PATH_BYTES_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", loader->checkpoint->folder, name);

    if (length < 0 || (size_t)length >= sizeof path) {
        start_refuse(START_USAGE, "--model-path is too long");
    }
    return domain_file_map(path, bytes);
}

/* The number of the shard of that name, made if it is new. */
static uint16_t find_shard(struct loader *loader, const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < loader->shard_count; i++) {
        if (strlen(loader->shards[i].name) == bytes && memcmp(loader->shards[i].name, name, bytes) == 0) {
            return (uint16_t)i;
        }
    }
    if (bytes == 0 || bytes >= FOLDER_NAME_BYTES_MAX || name[0] == '.' || memchr(name, '/', bytes) != NULL ||
        memchr(name, '\0', bytes) != NULL) {
        start_refuse(START_BAD_MODEL, "%s: \"%.*s\" is not the name of a file in the folder", INDEX_NAME,
                     bytes > 80 ? 80 : (int)bytes, name);
    }
    if (loader->shard_count == SHARDS_MAX) {
        start_refuse(START_BAD_MODEL, "%s names more than %d files", INDEX_NAME, SHARDS_MAX);
    }
    struct shard *shard = &loader->shards[loader->shard_count];
    memcpy(shard->name, name, bytes);
    shard->name[bytes] = '\0';
    return (uint16_t)loader->shard_count++;
}

/* One line of the index: a tensor's name and its file's. */
static void note_index_line(struct loader *loader, const struct json_event *key, const struct json_event *file)
{
    struct bind_place place;
    assert(key->kind == JSON_KEY && file->kind == JSON_STRING);
    uint16_t shard = find_shard(loader, file->text, file->bytes);

    switch (bind_find(loader->checkpoint, key->text, key->bytes, &place)) {
    case BIND_IGNORED:
        return;
    case BIND_UNKNOWN:
        start_refuse(START_BAD_MODEL, "%s: tensor %.*s is not one of the model's", INDEX_NAME, (int)key->bytes,
                     key->text);
    case BIND_WEIGHT:
        break;
    }
    struct bound *bound = &loader->bound[place.index];
    if (bound->indexed_shard != NO_SHARD) {
        start_refuse(START_BAD_MODEL, "%s: tensor %.*s comes twice", INDEX_NAME, (int)key->bytes, key->text);
    }
    bound->indexed_shard = shard;
}

static void read_weight_map(struct loader *loader, struct json_reader *reader)
{
    struct json_event key, file;
    enum err err = json_next(reader, &key);

    if (err != ERR_OK || key.kind != JSON_OBJECT_BEGIN) {
        start_refuse(START_BAD_MODEL, "%s: \"weight_map\" is not an object", INDEX_NAME);
    }
    while ((err = json_next(reader, &key)) == ERR_OK && key.kind == JSON_KEY) {
        err = json_next(reader, &file);
        if (err != ERR_OK) {
            break;
        }
        if (file.kind != JSON_STRING) {
            start_refuse(START_BAD_MODEL, "%s: the file of tensor %.*s is not a string", INDEX_NAME, (int)key.bytes,
                         key.text);
        }
        note_index_line(loader, &key, &file);
    }
    if (err != ERR_OK) {
        start_refuse(START_BAD_MODEL, "%s: %s at byte %zu", INDEX_NAME, reader->reason, reader->error_at);
    }
}

/* False if the folder has no index. */
static bool read_index(struct loader *loader)
{
    uint64_t bytes = 0;
    struct json_reader reader;
    struct json_event event;
    bool has_map = false;
    char *map = map_file(loader, INDEX_NAME, &bytes);

    if (map == NULL) {
        if (errno == ENOENT) {
            return false;
        }
        start_refuse(START_BAD_MODEL, "%s: %s", INDEX_NAME, start_errno_text(errno));
    }
    json_open(&reader, map, (size_t)bytes);
    enum err err = json_next(&reader, &event);
    while (err == ERR_OK && event.kind != JSON_END) {
        err = json_next(&reader, &event);
        if (err != ERR_OK || event.kind != JSON_KEY) {
            continue;
        }
        if (json_event_is(&event, "weight_map")) {
            read_weight_map(loader, &reader);
            has_map = true;
        } else {
            err = json_skip(&reader);
        }
    }
    if (err != ERR_OK) {
        start_refuse(START_BAD_MODEL, "%s: %s at byte %zu", INDEX_NAME, reader.reason, reader.error_at);
    }
    if (!has_map) {
        start_refuse(START_BAD_MODEL, "%s: \"weight_map\" is missing", INDEX_NAME);
    }
    domain_file_unmap(map, bytes);
    return true;
}

/* Looks at the folder's .safetensors files: without an index there must be one; with one, strangers are told. */
static void read_folder(struct loader *loader)
{
    struct folder_walk walk;
    char name[FOLDER_NAME_BYTES_MAX], found[FOLDER_NAME_BYTES_MAX] = "";
    uint32_t count = 0;

    if (!folder_open(&walk, loader->checkpoint->folder)) {
        start_refuse(START_BAD_MODEL, "%s: %s", loader->checkpoint->folder, start_errno_text(errno));
    }
    while (folder_next(&walk, ".safetensors", name)) {
        if (!loader->has_index) {
            memcpy(found, name, sizeof found);
            count++;
            continue;
        }
        bool is_named = false;
        for (uint32_t i = 0; i < loader->shard_count; i++) {
            is_named = is_named || strcmp(loader->shards[i].name, name) == 0;
        }
        if (!is_named) {
            log_warn("weights_ignored file=%s reason=not_in_index", name);
        }
    }
    folder_close(&walk);
    if (loader->has_index) {
        return;
    }
    if (count == 0) {
        start_refuse(START_BAD_MODEL, "%s: neither %s nor %s (to try without weights: --load-format dummy)",
                     loader->checkpoint->folder, SINGLE_NAME, INDEX_NAME);
    }
    if (count > 1) {
        start_refuse(START_BAD_MODEL, "%s: %u .safetensors files (%s is one) but no %s", loader->checkpoint->folder,
                     count, found, INDEX_NAME);
    }
    (void)find_shard(loader, found, strlen(found));
}

static void bind_entry(struct loader *loader, uint16_t shard, const struct tensor_entry *entry)
{
    const char *file = loader->shards[shard].name;
    struct bind_place place;
    assert(entry->begin <= entry->end && entry->end <= loader->shards[shard].map_bytes);
    int name_bytes = (int)entry->name_bytes;

    switch (bind_find(loader->checkpoint, entry->name, entry->name_bytes, &place)) {
    case BIND_IGNORED:
        log_info("weights_ignored file=%s tensor=%.*s", file, name_bytes, entry->name);
        return;
    case BIND_UNKNOWN:
        start_refuse(START_BAD_MODEL, "%s: tensor %.*s is not one of the model's", file, name_bytes, entry->name);
    case BIND_WEIGHT:
        break;
    }
    struct bound *bound = &loader->bound[place.index];
    if (bound->shard != NO_SHARD) {
        start_refuse(START_BAD_MODEL, "tensor %.*s comes twice: in %s and in %s", name_bytes, entry->name,
                     loader->shards[bound->shard].name, file);
    }
    if (loader->has_index && bound->indexed_shard != shard) {
        start_refuse(START_BAD_MODEL, "%s: tensor %.*s lies in %s by the index", file, name_bytes, entry->name,
                     bound->indexed_shard == NO_SHARD ? "no file" : loader->shards[bound->indexed_shard].name);
    }
    bind_check(loader->checkpoint, &place, entry, file);
    bound->shard = shard;
    bound->begin = entry->begin;
    bound->type = entry->type;
    loader->bound_count++;
    loader->file_bytes += entry->end - entry->begin;
}

static void read_shard(struct loader *loader, uint16_t number)
{
    assert(number < loader->shard_count);
    struct shard *shard = &loader->shards[number];
    struct safetensors file = {.entries = loader->entries, .capacity = loader->entry_capacity};

    shard->map = map_file(loader, shard->name, &shard->map_bytes);
    if (shard->map == NULL) {
        start_refuse(START_BAD_MODEL, "%s/%s: %s", loader->checkpoint->folder, shard->name, start_errno_text(errno));
    }
    if (!safetensors_read(&file, shard->map, (size_t)shard->map_bytes)) {
        if (file.subject != NULL) {
            start_refuse(START_BAD_MODEL, "%s: tensor %.*s: %s", shard->name,
                         file.subject_bytes > 200 ? 200 : (int)file.subject_bytes, file.subject, file.reason);
        }
        start_refuse(START_BAD_MODEL, "%s: %s", shard->name, file.reason);
    }
    for (uint32_t i = 0; i < file.count; i++) {
        bind_entry(loader, number, &file.entries[i]);
    }
}

static void check_complete(const struct loader *loader)
{
    struct bind_place place = {.row = NULL};
    char name[TENSOR_NAME_BYTES_MAX];

    while (bind_next(loader->checkpoint, &place)) {
        const struct bound *bound = &loader->bound[place.index];
        if (bound->shard != NO_SHARD) {
            continue;
        }
        bind_name(&place, name);
        if (bound->indexed_shard != NO_SHARD) {
            start_refuse(START_BAD_MODEL, "%s: tensor %s is missing; the index places it there",
                         loader->shards[bound->indexed_shard].name, name);
        }
        start_refuse(START_BAD_MODEL, "%s: tensor %s is missing", loader->checkpoint->folder, name);
    }
    assert(loader->bound_count == loader->checkpoint->tensor_count);
}

struct loader *loader_open(const struct checkpoint *checkpoint, void *scratch, uint64_t scratch_bytes)
{
    unsigned char *at = scratch;
    struct loader *loader = scratch;

    assert(scratch != NULL && (uintptr_t)scratch % 64 == 0);
    assert(scratch_bytes >= loader_bytes(checkpoint));
    memset(scratch, 0, (size_t)loader_bytes(checkpoint));
    loader->checkpoint = checkpoint;
    at += aligned(sizeof *loader);
    loader->shards = (struct shard *)(void *)at;
    at += aligned(SHARDS_MAX * sizeof(struct shard));
    loader->bound = (struct bound *)(void *)at;
    at += aligned(checkpoint->tensor_count * sizeof(struct bound));
    loader->entries = (struct tensor_entry *)(void *)at;
    loader->entry_capacity = checkpoint->tensor_count + IGNORED_TENSORS_MAX;
    for (uint32_t i = 0; i < checkpoint->tensor_count; i++) {
        loader->bound[i].shard = loader->bound[i].indexed_shard = NO_SHARD;
    }

    loader->has_index = read_index(loader);
    read_folder(loader);
    for (uint32_t i = 0; i < loader->shard_count; i++) {
        read_shard(loader, (uint16_t)i);
    }
    check_complete(loader);
    return loader;
}

const void *loader_tensor(const struct loader *loader, uint32_t index, enum tensor_type *type)
{
    assert(index < loader->checkpoint->tensor_count);
    const struct bound *bound = &loader->bound[index];
    assert(bound->shard != NO_SHARD && bound->shard < loader->shard_count);
    *type = (enum tensor_type)bound->type;
    return loader->shards[bound->shard].map + bound->begin;
}

uint64_t loader_file_bytes(const struct loader *loader)
{
    assert(loader->bound_count == loader->checkpoint->tensor_count);
    return loader->file_bytes;
}

void loader_close(struct loader *loader)
{
    assert(loader->shard_count > 0 && loader->shard_count <= SHARDS_MAX);
    for (uint32_t i = 0; i < loader->shard_count; i++) {
        domain_file_unmap(loader->shards[i].map, loader->shards[i].map_bytes);
        loader->shards[i].map = NULL;
    }
}
