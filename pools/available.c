/* available: how much memory this machine, or the container that we run in, has left. */
#include "pools/available.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 1024, FILE_BYTES_MAX = 8192, GROUP_DEPTH_MAX = 64 };

static const uint64_t UNLIMITED = UINT64_MAX;

/* Where a version of control groups keeps its numbers. */
struct group_files {
    const char *mount; /* below the root */
    const char *limit;
    const char *use;
    const char *idle_key; /* of memory.stat: bytes of files that the kernel gives back first */
};

static const struct group_files version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                             "total_inactive_file "};
static const struct group_files version_2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};

/* Reads a whole small file as text. False if there is none. */
static bool read_text(const char *path, char *text, size_t capacity)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    size_t length = 0;
    ssize_t got;
    while (length < capacity - 1 && (got = read(file, text + length, capacity - 1 - length)) > 0) {
        length += (size_t)got;
    }
    (void)close(file);
    assert(length < capacity);
    text[length] = '\0';
    return length > 0;
}

/* The number at the start of `text`, saturated; `otherwise` if there is none ("max"). */
static uint64_t number_at(const char *text, uint64_t otherwise)
{
    assert(text != NULL);
    while (*text == ' ' || *text == '\t') {
        text++;
    }
    if (*text < '0' || *text > '9') {
        return otherwise;
    }
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) {
            return UNLIMITED;
        }
    }
    return value;
}

/* The number behind `key` at the start of a line. */
static uint64_t number_of_key(const char *text, const char *key, uint64_t otherwise)
{
    size_t key_bytes = strlen(key);

    assert(key_bytes > 0);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, key_bytes) == 0) {
            return number_at(line + key_bytes, otherwise);
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return otherwise;
}

/* What one group leaves; UNLIMITED if it sets no limit or does not exist. */
static uint64_t left_in_group(const char *root, const struct group_files *files, const char *group)
{
    char path[PATH_BYTES_MAX], text[FILE_BYTES_MAX];

    (void)snprintf(path, sizeof path, "%s%s%s/%s", root, files->mount, group, files->limit);
    uint64_t limit = read_text(path, text, sizeof text) ? number_at(text, UNLIMITED) : UNLIMITED;
    if (limit >= UNLIMITED / 2) {
        return UNLIMITED; /* version 1 writes "no limit" as a number near 2^63 */
    }
    (void)snprintf(path, sizeof path, "%s%s%s/%s", root, files->mount, group, files->use);
    uint64_t use = read_text(path, text, sizeof text) ? number_at(text, 0) : 0;
    (void)snprintf(path, sizeof path, "%s%s%s/memory.stat", root, files->mount, group);
    uint64_t idle = read_text(path, text, sizeof text) ? number_of_key(text, files->idle_key, 0) : 0;
    use -= idle < use ? idle : use;
    return use < limit ? limit - use : 0;
}

/* The least that `group` and those above it leave. Inside a container the path may not exist below the mount; the
 * mount's own files, tried last, are then the container's. */
static uint64_t left_in_groups(const char *root, const struct group_files *files, const char *group, size_t group_bytes)
{
    char path[PATH_BYTES_MAX];
    uint64_t least = UNLIMITED;

    group_bytes = group_bytes < sizeof path ? group_bytes : sizeof path - 1;
    memcpy(path, group, group_bytes);
    path[group_bytes] = '\0';
    for (int depth = 0; depth < GROUP_DEPTH_MAX; depth++) {
        size_t length = strlen(path);
        if (length > 0 && path[length - 1] == '/') {
            path[length - 1] = '\0';
        }
        uint64_t left = left_in_group(root, files, path);
        least = left < least ? left : least;
        char *slash = strrchr(path, '/');
        if (slash == NULL) {
            break;
        }
        *slash = '\0';
    }
    return least;
}

static bool names_memory(const char *controllers, size_t bytes)
{
    static const char word[] = "memory";
    const size_t word_bytes = sizeof word - 1;

    for (size_t at = 0; at + word_bytes <= bytes; at++) {
        bool begins = at == 0 || controllers[at - 1] == ',';
        bool ends = at + word_bytes == bytes || controllers[at + word_bytes] == ',';
        if (begins && ends && memcmp(controllers + at, word, word_bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Lines are "number:controllers:path"; version 2 has number 0 and no controllers. */
static uint64_t left_in_control_groups(const char *root)
{
    char path[PATH_BYTES_MAX], text[FILE_BYTES_MAX];
    uint64_t least = UNLIMITED;

    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!read_text(path, text, sizeof text)) {
        return UNLIMITED;
    }
    for (const char *line = text; *line != '\0';) {
        size_t line_bytes = strcspn(line, "\n");
        const char *controllers = memchr(line, ':', line_bytes);
        const char *group =
            controllers == NULL ? NULL : memchr(controllers + 1, ':', line_bytes - (size_t)(controllers + 1 - line));
        if (group != NULL) {
            size_t controllers_bytes = (size_t)(group - controllers - 1);
            size_t group_bytes = line_bytes - (size_t)(group + 1 - line);
            uint64_t left = UNLIMITED;
            if (controllers_bytes == 0) {
                left = left_in_groups(root, &version_2, group + 1, group_bytes);
            } else if (names_memory(controllers + 1, controllers_bytes)) {
                left = left_in_groups(root, &version_1, group + 1, group_bytes);
            }
            least = left < least ? left : least;
        }
        line += line_bytes + (line[line_bytes] == '\n');
    }
    return least;
}

uint64_t available_bytes(const char *root)
{
    char path[PATH_BYTES_MAX], text[FILE_BYTES_MAX];

    assert(root != NULL);
    (void)snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (!read_text(path, text, sizeof text)) {
        return 0;
    }
    uint64_t machine_kib = number_of_key(text, "MemAvailable:", 0);
    uint64_t machine = machine_kib > UNLIMITED / 1024 ? UNLIMITED : machine_kib * 1024;
    uint64_t groups = left_in_control_groups(root);
    return machine < groups ? machine : groups;
}
