/* Properties of pools/domain_host.c: memory is there, zeroed and resident; guards fault; files are private copies. */
#include "pools/domain.h"
#include "tests/harness.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { RANGE_BYTES = 5 * 1024 * 1024, SLACK_BYTES = 64 * 1024 * 1024 }; /* the sanitizer's own pages */
#else
enum { RANGE_BYTES = 5 * 1024 * 1024, SLACK_BYTES = 512 * 1024 };
#endif

static uint64_t resident_bytes(void)
{
    char text[8192];
    long got = harness_read("/proc/self/status", text, sizeof text - 1);

    text[got > 0 ? got : 0] = '\0';
    const char *line = strstr(text, "RssAnon:");
    return line == NULL ? 0 : strtoull(line + 8, NULL, 10) * 1024;
}

static void populated_memory_is_resident_zero_and_counted(void)
{
    for (int i = 0; i < DOMAIN_COUNT; i++) {
        uint64_t before = resident_bytes(), counted_before = domain_populated_bytes();
        unsigned char *range = domain_reserve((enum domain)i, RANGE_BYTES);
        assert(range != NULL);
        CU_ASSERT((uintptr_t)range % 4096 == 0);
        CU_ASSERT(resident_bytes() < before + RANGE_BYTES / 2);
        CU_ASSERT(domain_populate((enum domain)i, range, RANGE_BYTES));
        uint64_t grown = resident_bytes() - before;
        CU_ASSERT(grown >= RANGE_BYTES && grown < RANGE_BYTES + SLACK_BYTES);
        CU_ASSERT(domain_populated_bytes() - counted_before == RANGE_BYTES);
        CU_ASSERT(domain_locked_bytes() <= domain_populated_bytes());
        CU_ASSERT(range[0] == 0 && range[RANGE_BYTES - 1] == 0);
        memset(range, 1, RANGE_BYTES);
        CU_ASSERT(resident_bytes() - before < RANGE_BYTES + SLACK_BYTES);
    }
}

static void more_than_the_address_space_is_refused(void)
{
    CU_ASSERT(domain_reserve(DOMAIN_DEVICE, UINT64_MAX) == NULL);
    CU_ASSERT(domain_reserve(DOMAIN_DEVICE, (uint64_t)1 << 62) == NULL);
}

static void a_guard_faults_and_its_neighbours_do_not(void)
{
    unsigned char *range = domain_reserve(DOMAIN_HOST, 3 * 4096);
    int status = 0;

    CU_ASSERT_FATAL(range != NULL && domain_populate(DOMAIN_HOST, range, 3 * 4096));
    domain_guard(range + 4096, 4096);
    range[4095] = 1;
    range[8192] = 1;
    pid_t child = fork();
    if (child == 0) {
        ((volatile unsigned char *)range)[4096] = 1;
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    CU_ASSERT(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

static void a_file_is_a_private_copy(void)
{
    char path[] = "/tmp/ashlar-domain-XXXXXX";
    char back[16] = {0};
    uint64_t bytes = 99;
    int file = mkstemp(path);

    CU_ASSERT_FATAL(file >= 0);
    char *map = domain_file_map(path, &bytes);
    CU_ASSERT_FATAL(map != NULL); /* empty, but something to point at */
    CU_ASSERT(bytes == 0);
    CU_ASSERT(domain_file_map_count() == 1);
    domain_file_unmap(map, bytes);

    CU_ASSERT(write(file, "ashlar", 6) == 6);
    map = domain_file_map(path, &bytes);
    assert(map != NULL);
    CU_ASSERT(bytes == 6 && memcmp(map, "ashlar", 6) == 0);
    map[0] = 'A';
    CU_ASSERT(harness_read(path, back, sizeof back) == 6 && back[0] == 'a');
    domain_file_unmap(map, bytes);
    CU_ASSERT(domain_file_map_count() == 0);
    (void)close(file);
    (void)unlink(path);
}

static void what_is_no_file_is_refused_with_a_reason(void)
{
    uint64_t bytes = 99;
    char path[64];

    errno = 0;
    CU_ASSERT(domain_file_map("/nowhere/at/all", &bytes) == NULL);
    CU_ASSERT(errno == ENOENT && bytes == 0);
    CU_ASSERT(domain_file_map("tests", &bytes) == NULL);
    CU_ASSERT(errno == EISDIR);
    CU_ASSERT(domain_file_map("/dev/null", &bytes) == NULL);
    CU_ASSERT(errno == EINVAL);
    (void)snprintf(path, sizeof path, "/tmp/ashlar-test-pipe-%d", (int)getpid());
    CU_ASSERT_FATAL(mkfifo(path, 0600) == 0);
    CU_ASSERT(domain_file_map(path, &bytes) == NULL); /* at once: nobody will ever write into it */
    CU_ASSERT(errno == EINVAL);
    (void)unlink(path);
    CU_ASSERT(domain_file_map_count() == 0);
}

static void unmap_without_map(void)
{
    static char nothing[4096];

    domain_file_unmap(nothing, sizeof nothing);
}

static void misuse_is_caught(void)
{
    CU_ASSERT(harness_aborts(unmap_without_map));
    CU_ASSERT(domain_is_one_memory());
    CU_ASSERT(strcmp(domain_name(DOMAIN_DEVICE), "device") == 0);
    CU_ASSERT(domain_available_bytes() > 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(populated_memory_is_resident_zero_and_counted),
        CASE(more_than_the_address_space_is_refused),
        CASE(a_guard_faults_and_its_neighbours_do_not),
        CASE(a_file_is_a_private_copy),
        CASE(what_is_no_file_is_refused_with_a_reason),
        CASE(misuse_is_caught),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "pools/domain_host", cases, NULL);
}
