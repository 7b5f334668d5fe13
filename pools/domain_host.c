/* domain_host: host memory for every domain (a CPU build). The only file of a CPU build that obtains memory.
 *
 * Always true between calls: locked_bytes <= populated_bytes; each file map that was handed out and not given back is
 * counted.
 */
#define _GNU_SOURCE /* MADV_*, MAP_* */
#include "pools/available.h"
#include "pools/domain.h"
#include "pools/seal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static const uint64_t HUGE_PAGE_BYTES = 2 * 1024 * 1024;

static uint64_t populated_bytes, locked_bytes;
static uint32_t file_map_count;

const char *domain_name(enum domain domain)
{
    static const char *const names[DOMAIN_COUNT] = {"device", "pinned", "host"};

    assert(domain < DOMAIN_COUNT);
    return names[domain];
}

bool domain_is_one_memory(void)
{
    return true;
}

uint64_t domain_available_bytes(void)
{
    return available_bytes("");
}

static uint64_t page_bytes(void)
{
    long bytes = sysconf(_SC_PAGESIZE);

    assert(bytes > 0);
    return (uint64_t)bytes;
}

void *domain_reserve(enum domain domain, uint64_t bytes)
{
    seal_assert_open();
    assert(domain < DOMAIN_COUNT);
    assert(bytes > 0);

    /* Weights and KV are read in long rows: huge pages, if the kernel has some, save address translation. */
    bool wants_huge = domain == DOMAIN_DEVICE && bytes >= HUGE_PAGE_BYTES;
    uint64_t slack = wants_huge ? HUGE_PAGE_BYTES : 0;
    if (bytes > PTRDIFF_MAX - slack) {
        return NULL;
    }
    unsigned char *range = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range == MAP_FAILED) {
        return NULL;
    }
    if (wants_huge) {
        range += (HUGE_PAGE_BYTES - (uintptr_t)range % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
        (void)madvise(range, bytes, MADV_HUGEPAGE); /* a wish */
    }
    return range;
}

/* For kernels before 5.14. The write keeps what is there: nobody else knows the range yet. */
static void touch(volatile unsigned char *range, uint64_t bytes)
{
    uint64_t step = page_bytes();

    for (uint64_t at = 0; at < bytes; at += step) {
        range[at] = range[at];
    }
}

bool domain_populate(enum domain domain, void *address, uint64_t bytes)
{
    seal_assert_open();
    assert(domain < DOMAIN_COUNT);
    assert((uintptr_t)address % page_bytes() == 0);

    if (madvise(address, bytes, MADV_POPULATE_WRITE) != 0) {
        if (errno != EINVAL) {
            return false;
        }
        touch(address, bytes);
    }
    populated_bytes += bytes;
    if (mlock(address, bytes) == 0) {
        locked_bytes += bytes;
    }
    return true;
}

uint64_t domain_populated_bytes(void)
{
    return populated_bytes;
}

uint64_t domain_locked_bytes(void)
{
    assert(locked_bytes <= populated_bytes);
    return locked_bytes;
}

void domain_guard(void *address, uint64_t bytes)
{
    seal_assert_open();
    assert((uintptr_t)address % page_bytes() == 0);
    assert(bytes % page_bytes() == 0);

    (void)munlock(address, bytes); /* locked pages could not be given back */
    (void)madvise(address, bytes, MADV_DONTNEED);
    int refused = mprotect(address, bytes, PROT_NONE);
    assert(refused == 0);
    (void)refused;
}

void *domain_file_map(const char *path, uint64_t *bytes)
{
    seal_assert_open();
    assert(path != NULL);
    assert(bytes != NULL);

    *bytes = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe in a file's place is refused, not waited for */
    if (file < 0) {
        return NULL;
    }
    struct stat status;
    void *map = MAP_FAILED;
    if (fstat(file, &status) == 0) {
        if (!S_ISREG(status.st_mode)) {
            errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
        } else if (status.st_size == 0) {
            map = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        } else {
            *bytes = (uint64_t)status.st_size;
            map = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        }
    }
    int reason = errno;
    (void)close(file);
    if (map == MAP_FAILED) {
        *bytes = 0;
        errno = reason;
        return NULL;
    }
    file_map_count++;
    return map;
}

void domain_file_unmap(void *address, uint64_t bytes)
{
    seal_assert_open();
    assert(address != NULL);
    assert(file_map_count > 0);

    int refused = munmap(address, bytes == 0 ? 1 : bytes);
    assert(refused == 0);
    (void)refused;
    file_map_count--;
}

uint32_t domain_file_map_count(void)
{
    return file_map_count;
}
