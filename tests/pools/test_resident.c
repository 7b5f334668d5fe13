/* Properties of pools/resident.c: what the program owns is backed afterwards, so that using it raises no count. */
#include "pools/resident.h"
#include "pools/seal.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 3 * 1024 * 1024, STEP_BYTES = 4096 };

static unsigned char zeros[BLOCK_BYTES];         /* never written before the case */
static unsigned char data[BLOCK_BYTES] = {1, 2}; /* in the program's file */

static uint64_t resident_bytes(const char *key)
{
    static char text[8192];
    long got = harness_read("/proc/self/status", text, sizeof text - 1);

    text[got > 0 ? got : 0] = '\0';
    const char *line = strstr(text, key);
    return line == NULL ? 0 : strtoull(line + strlen(key), NULL, 10) * 1024;
}

static void write_all(unsigned char *block)
{
    for (size_t at = 0; at < BLOCK_BYTES; at += STEP_BYTES) {
        ((volatile unsigned char *)block)[at] ^= 1;
    }
}

static void using_the_programs_own_data_raises_no_count(void)
{
    uint64_t before = resident_bytes("RssAnon:");
    struct resident_report report = resident_touch();

    if (report.mappings == 0) {
        return; /* a sanitizer's build */
    }
    uint64_t ready = resident_bytes("RssAnon:"), ready_file = resident_bytes("RssFile:");
    CU_ASSERT(ready - before > 2 * (BLOCK_BYTES - 64 * 1024));
    CU_ASSERT(report.refused == 0);
    CU_ASSERT(report.file_bytes > 0 && report.private_bytes > 2 * BLOCK_BYTES);
    write_all(zeros);
    write_all(data);
    CU_ASSERT(resident_bytes("RssAnon:") - ready < 64 * 1024);
    CU_ASSERT(resident_bytes("RssFile:") - ready_file < 64 * 1024);
    CU_ASSERT(zeros[1] == 0 && data[1] == 2); /* nothing was changed */
}

static void touching_twice_is_harmless(void)
{
    (void)resident_touch();
    uint64_t ready = resident_bytes("RssAnon:");
    struct resident_report report = resident_touch();
    CU_ASSERT(resident_bytes("RssAnon:") - ready < 64 * 1024);
    CU_ASSERT(report.refused == 0);
}

static void touch_after_the_seal(void)
{
    seal_close();
    (void)resident_touch();
}

static void it_belongs_to_start_up(void)
{
    CU_ASSERT(harness_aborts(touch_after_the_seal));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(using_the_programs_own_data_raises_no_count),
        CASE(touching_twice_is_harmless),
        CASE(it_belongs_to_start_up),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "pools/resident", cases, NULL);
}
