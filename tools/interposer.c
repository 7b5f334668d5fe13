/* interposer: counts every heap call of a process, libraries and libc's own included (LD_PRELOAD, make noheap).
 *
 * Always true: a call between seal_close and seal_end is an offence. It is counted, and unless ASHLAR_HEAP=count is set
 * its backtrace is printed and the process aborts. Before and after, calls are passed on and not counted.
 */
#define _GNU_SOURCE /* mremap, RTLD_NEXT */
#include "pools/seal.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAMES_MAX = 48 };

/* glibc's own names of its heap: no look-up is needed, so none can recurse. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

/* Interposed, and declared nowhere any more. */
void *pvalloc(size_t bytes);
void *memalign(size_t alignment, size_t bytes);

static _Atomic bool is_sealed;
static _Atomic uint64_t calls_since_seal;
static bool only_counts;

static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
static int (*real_munmap)(void *, size_t);
static void *(*real_mremap)(void *, size_t, size_t, int, ...);
static int (*real_brk)(void *);
static void *(*real_sbrk)(intptr_t);

__attribute__((constructor)) static void prepare(void)
{
    void *frames[FRAMES_MAX];
    const char *mode = getenv("ASHLAR_HEAP");

    only_counts = mode != NULL && strcmp(mode, "count") == 0;
    (void)backtrace(frames, FRAMES_MAX); /* the first one loads libgcc, with the heap's help */
    *(void **)&real_mmap = dlsym(RTLD_NEXT, "mmap");
    *(void **)&real_munmap = dlsym(RTLD_NEXT, "munmap");
    *(void **)&real_mremap = dlsym(RTLD_NEXT, "mremap");
    *(void **)&real_brk = dlsym(RTLD_NEXT, "brk");
    *(void **)&real_sbrk = dlsym(RTLD_NEXT, "sbrk");
}

void seal_hook(enum seal_state state)
{
    is_sealed = state == SEAL_CLOSED;
}

uint64_t seal_heap_calls(void)
{
    return calls_since_seal;
}

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void note(const char *name)
{
    void *frames[FRAMES_MAX];

    if (!is_sealed) {
        return;
    }
    calls_since_seal++;
    say("interposer: ");
    say(name);
    say(" after the seal\n");
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
    if (!only_counts) {
        is_sealed = false; /* abort may use the heap */
        abort();
    }
}

void *malloc(size_t bytes)
{
    note("malloc");
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    note("calloc");
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    note("realloc");
    return __libc_realloc(memory, bytes);
}

void *reallocarray(void *memory, size_t count, size_t bytes)
{
    size_t all = 0;

    note("reallocarray");
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(memory, all);
}

void free(void *memory)
{
    note("free");
    __libc_free(memory);
}

void *memalign(size_t alignment, size_t bytes)
{
    note("memalign");
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    note("aligned_alloc");
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    note("posix_memalign");
    void *aligned = __libc_memalign(alignment, bytes);
    if (aligned == NULL) {
        return ENOMEM;
    }
    *memory = aligned;
    return 0;
}

void *valloc(size_t bytes)
{
    note("valloc");
    return __libc_memalign((size_t)sysconf(_SC_PAGESIZE), bytes);
}

void *pvalloc(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    note("pvalloc");
    return __libc_memalign(page, (bytes + page - 1) / page * page);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    note("mmap");
    return real_mmap(address, bytes, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    note("mmap64");
    return real_mmap(address, bytes, protection, flags, fd, offset);
}

int munmap(void *address, size_t bytes)
{
    note("munmap");
    return real_munmap(address, bytes);
}

void *mremap(void *address, size_t old_bytes, size_t new_bytes, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    void *wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    note("mremap");
    return real_mremap(address, old_bytes, new_bytes, flags, wanted);
}

int brk(void *address)
{
    note("brk");
    return real_brk(address);
}

void *sbrk(intptr_t increment)
{
    note("sbrk");
    return real_sbrk(increment);
}
