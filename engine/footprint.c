/* footprint: what the process really holds, beside what was planned. */
#include "engine/footprint.h"

#include "engine/log.h"
#include "pools/pools.h"

#include <assert.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_BYTES_MAX = 8192 };

static const uint64_t PROGRAM_BYTES_MAX = 8 * 1024 * 1024;

/* The number of KiB in the line "key:   123 kB", as bytes; 0 if there is none. */
static uint64_t bytes_of_key(const char *status, const char *key)
{
    const char *line = strstr(status, key);
    uint64_t kib = 0;

    assert(key[0] == '\n'); /* so that a key is not found inside another */
    if (line == NULL) {
        return 0;
    }
    line += strlen(key);
    line += strspn(line, " \t");
    for (; *line >= '0' && *line <= '9' && kib < UINT64_MAX / 20480; line++) {
        kib = kib * 10 + (uint64_t)(*line - '0');
    }
    return kib * 1024;
}

static bool read_status(char *text, size_t capacity)
{
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got;

    if (file < 0) {
        return false;
    }
    while (length < capacity - 1 && (got = read(file, text + length, capacity - 1 - length)) > 0) {
        length += (size_t)got;
    }
    (void)close(file);
    assert(length < capacity);
    text[length] = '\0';
    return length > 0;
}

bool footprint_read(struct footprint *footprint)
{
    char status[STATUS_BYTES_MAX];
    struct mallinfo2 heap = mallinfo2();

    assert(footprint != NULL);
    *footprint = (struct footprint){
        .planned_bytes = pools_opened_plan()->total_bytes,
        .locked_bytes = domain_locked_bytes(),
        .heap_used_bytes = heap.uordblks + heap.hblkhd,
        .is_heap_counted = seal_heap_calls != NULL,
        .heap_calls = seal_heap_calls != NULL ? seal_heap_calls() : 0,
    };
    if (!read_status(status, sizeof status)) {
        return false;
    }
    footprint->anonymous_bytes = bytes_of_key(status, "\nRssAnon:");
    footprint->file_bytes = bytes_of_key(status, "\nRssFile:");
    footprint->peak_bytes = bytes_of_key(status, "\nVmHWM:");
    footprint->swapped_bytes = bytes_of_key(status, "\nVmSwap:");
    return true;
}

bool footprint_keeps(const struct footprint *footprint)
{
    uint64_t planned = footprint->planned_bytes;
    uint64_t resident = footprint->anonymous_bytes;
    uint64_t difference = planned < resident ? resident - planned : planned - resident;

    assert(planned < UINT64_MAX / 2);
    return difference < planned / 100 + PROGRAM_BYTES_MAX;
}

void footprint_log(const struct footprint *footprint)
{
    bool keeps = footprint_keeps(footprint);

    log_line(keeps ? LOG_INFO : LOG_WARN,
             "footprint planned_bytes=%llu resident_bytes=%llu difference_bytes=%lld locked_bytes=%llu file_bytes=%llu "
             "heap_bytes=%llu as_planned=%s",
             (unsigned long long)footprint->planned_bytes, (unsigned long long)footprint->anonymous_bytes,
             (long long)footprint->anonymous_bytes - (long long)footprint->planned_bytes,
             (unsigned long long)footprint->locked_bytes, (unsigned long long)footprint->file_bytes,
             (unsigned long long)footprint->heap_used_bytes, keeps ? "yes" : "no");
    if (footprint->locked_bytes < footprint->planned_bytes) {
        log_warn(
            "memory_not_locked locked_bytes=%llu planned_bytes=%llu hint=\"raise the limit of locked memory (ulimit "
            "-l) so that the system cannot swap the plan out\"",
            (unsigned long long)footprint->locked_bytes, (unsigned long long)footprint->planned_bytes);
    }
}
