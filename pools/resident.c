/* resident: makes the program itself resident before "ready".
 *
 * Always true: no byte of any mapping changes; only whether it is backed by memory of its own.
 */
#define _GNU_SOURCE /* MADV_POPULATE_* */
#include "pools/resident.h"

#include "pools/seal.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HAS_SHADOW
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW
#endif

#ifdef HAS_SHADOW
static const bool has_shadow = true;
#else
static const bool has_shadow = false;
#endif

enum { LINES_BYTES = 16 * 1024 };

/* One line of /proc/self/maps: "begin-end rwxp offset device inode path". */
struct mapping {
    uint64_t begin, end;
    bool is_readable, is_writable, is_private, is_of_file, is_special;
};

static const char *read_hex(const char *text, uint64_t *value)
{
    *value = 0;
    for (;; text++) {
        unsigned int digit = 0;
        if (*text >= '0' && *text <= '9') {
            digit = (unsigned int)(*text - '0');
        } else if (*text >= 'a' && *text <= 'f') {
            digit = (unsigned int)(*text - 'a') + 10;
        } else {
            return text;
        }
        *value = *value << 4 | digit;
    }
}

/* Reads one line, which ends with NUL. False if it is malformed. */
static bool read_mapping(const char *line, struct mapping *mapping)
{
    const char *at = read_hex(line, &mapping->begin);

    if (*at != '-') {
        return false;
    }
    at = read_hex(at + 1, &mapping->end);
    if (*at != ' ' || strlen(at) < 6 || mapping->begin >= mapping->end) {
        return false;
    }
    mapping->is_readable = at[1] == 'r';
    mapping->is_writable = at[2] == 'w';
    mapping->is_private = at[4] == 'p';
    const char *path = strchr(at, '/');
    const char *bracket = strchr(at, '[');
    mapping->is_of_file = path != NULL;
    /* [vdso] and its like are the kernel's; [heap] and [stack] are ours. */
    mapping->is_special = bracket != NULL && strcmp(bracket, "[heap]") != 0 && strcmp(bracket, "[stack]") != 0;
    return true;
}

static void touch_mapping(const struct mapping *mapping, struct resident_report *report)
{
    uint64_t bytes = mapping->end - mapping->begin;
    bool is_copied = mapping->is_writable && mapping->is_private;

    if (!mapping->is_readable || mapping->is_special || (!is_copied && !mapping->is_of_file)) {
        return; /* a guard, the kernel's, or shared memory of somebody else */
    }
    report->mappings++;
    void *address = (void *)(uintptr_t)mapping->begin;
    if (madvise(address, bytes, is_copied ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) != 0) {
        report->refused++;
        return;
    }
    *(is_copied ? &report->private_bytes : &report->file_bytes) += bytes;
}

/* Deeper frames than start-up had will find their pages there. */
static void touch_stack(void)
{
    volatile unsigned char frame[RESIDENT_STACK_BYTES];

    for (uint32_t at = 0; at < RESIDENT_STACK_BYTES; at += 1024) {
        frame[at] = 0;
    }
    assert(frame[0] == 0);
}

/* Handles the whole lines in `text`; returns how many bytes they were. */
static size_t touch_lines(char *text, size_t bytes, struct resident_report *report)
{
    size_t done = 0;
    char *end;

    while (done < bytes && (end = memchr(text + done, '\n', bytes - done)) != NULL) {
        struct mapping mapping;
        *end = '\0';
        if (read_mapping(text + done, &mapping)) {
            touch_mapping(&mapping, report);
        }
        done = (size_t)(end + 1 - text);
    }
    assert(done <= bytes);
    return done;
}

struct resident_report resident_touch(void)
{
    struct resident_report report = {0};
    char text[LINES_BYTES];
    size_t length = 0;
    ssize_t got;

    seal_assert_open();
    if (has_shadow) {
        return report;
    }
    touch_stack();
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0) {
        report.refused++;
        return report;
    }
    while ((got = read(maps, text + length, sizeof text - length)) > 0) {
        length += (size_t)got;
        size_t done = touch_lines(text, length, &report);
        assert(done > 0 || length < sizeof text); /* a line is a path and some numbers */
        length -= done;
        memmove(text, text + done, length);
    }
    (void)close(maps);
    return report;
}
