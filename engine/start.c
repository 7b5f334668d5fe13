/* start: refusing to start. */
#define _GNU_SOURCE /* strerrordesc_np */
#include "engine/start.h"

#include "config.h"
#include "pools/seal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

void start_hold_streams(void)
{
    int file;

    do {
        file = open("/dev/null", O_RDWR); /* the lowest number that is free */
    } while (file >= 0 && file <= STDERR_FILENO);
    if (file > STDERR_FILENO) {
        (void)close(file);
    }
    (void)signal(SIGXFSZ, SIG_IGN);
}

void start_hold_stack(unsigned long bytes)
{
    struct rlimit limit;

    assert(bytes > 0);
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= bytes) {
        return;
    }
    limit.rlim_cur = bytes; /* the kernel looks at it whenever the stack grows */
    if (limit.rlim_max < bytes || setrlimit(RLIMIT_STACK, &limit) != 0) {
        start_refuse(START_NO_MEMORY, "the stack may not grow to %lu bytes: raise the limit (ulimit -Hs)", bytes);
    }
}

/* A pipe may take less than asked, a signal may come between; anything else means that nobody reads. */
static void write_all(int file, const char *text, size_t bytes)
{
    size_t written = 0;

    assert(text != NULL);
    while (written < bytes) {
        ssize_t got = write(file, text + written, bytes - written);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return;
        }
        written += (size_t)got;
    }
    assert(written == bytes);
}

void start_print(const char *text, unsigned long bytes)
{
    write_all(STDOUT_FILENO, text, bytes);
}

void start_print_error(const char *text, unsigned long bytes)
{
    write_all(STDERR_FILENO, text, bytes);
}

void start_refuse(enum start_exit exit_code, const char *format, ...)
{
    static const char prefix[] = "ashlar: ";
    char line[sizeof prefix + LOG_LINE_BYTES_MAX + 1];
    va_list arguments;

    seal_assert_open();
    assert(exit_code != START_OK);
    memcpy(line, prefix, sizeof prefix);
    va_start(arguments, format);
    int length = vsnprintf(line + sizeof prefix - 1, LOG_LINE_BYTES_MAX, format, arguments);
    va_end(arguments);
    size_t bytes = strlen(line);
    assert(length >= 0);
    line[bytes] = '\n';
    start_print_error(line, bytes + 1);
    _exit((int)exit_code);
}

const char *start_errno_text(int error_number)
{
    const char *text = strerrordesc_np(error_number);

    return text != NULL ? text : "unknown error";
}
