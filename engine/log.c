/* log: one line an event to standard error.
 *
 * Always true: a line is written by exactly one thread: by its caller before log_start and after log_stop, by the log
 * thread between. Nobody but the log thread ever waits for standard error.
 */
#include "engine/log.h"

#include "config.h"
#include "engine/clock.h"
#include "engine/thread.h"
#include "engine/wake.h"
#include "pools/pools.h"
#include "pools/ring.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How long a reader that stalls is waited for: while we run, look by look, without end; then for a few looks in all. */
enum { LOOK_MS = 100, LAST_LOOKS = 5 };

/* A queued line; with the ring's turn it fills LOG_SLOT_BYTES. */
struct log_entry {
    uint32_t bytes;
    char text[LOG_LINE_BYTES_MAX];
};

static struct {
    struct crowd_ring ring;
    struct wake wake;
    struct thread thread;
    _Atomic int level;
    atomic_bool is_running, is_stopping;
    _Atomic int last_looks; /* left, once we stop */
    _Atomic uint64_t dropped_count;
    uint64_t told_dropped_count; /* the log thread's */
} state = {.level = LOG_INFO, .last_looks = LAST_LOOKS};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

bool log_level_parse(const char *text, enum log_level *level)
{
    static const struct {
        const char *text;
        enum log_level level;
    } words[] = {{"critical", LOG_ERROR}, {"error", LOG_ERROR}, {"warning", LOG_WARN},
                 {"warn", LOG_WARN},      {"info", LOG_INFO},   {"debug", LOG_DEBUG}};

    assert(text != NULL && level != NULL);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].text, text) == 0) {
            *level = words[i].level;
            return true;
        }
    }
    return false;
}

void log_set_level(enum log_level level)
{
    assert(level <= LOG_DEBUG);
    atomic_store_explicit(&state.level, (int)level, memory_order_relaxed);
}

bool log_is_on(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&state.level, memory_order_relaxed);
}

/* Waits until standard error takes a line or fails; not for a reader that stalls while the server wants to end. */
static bool wait_for_reader(void)
{
    struct pollfd standard_error = {.fd = STDERR_FILENO, .events = POLLOUT};

    for (;;) {
        int looks = atomic_load_explicit(&state.last_looks, memory_order_relaxed);
        if (poll(&standard_error, 1, looks > 0 ? LOOK_MS : 0) != 0) {
            return true; /* it takes a line, or has an error that write will tell */
        }
        if (atomic_load_explicit(&state.is_stopping, memory_order_acquire)) {
            if (looks == 0) {
                return false;
            }
            atomic_store_explicit(&state.last_looks, looks - 1, memory_order_relaxed);
        }
    }
}

/* Standard error may be a full disk, a closed descriptor, a pipe without reader: the line is lost and life goes on. */
static void write_line(const struct log_entry *entry)
{
    uint32_t written = 0;

    assert(entry->bytes <= sizeof entry->text);
    while (written < entry->bytes) {
        ssize_t got =
            wait_for_reader() ? write(STDERR_FILENO, entry->text + written, entry->bytes - written) : 0;
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            atomic_fetch_add_explicit(&state.dropped_count, 1, memory_order_relaxed);
            return;
        }
        written += (uint32_t)got;
    }
}

/* Text of strangers must not begin a line of its own, nor speak to a terminal. */
static void defuse(char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)text[i];
        text[i] = byte < 0x20 || byte == 0x7f ? '?' : text[i];
    }
}

static void compose(struct log_entry *entry, enum log_level level, const char *format, va_list arguments)
{
    size_t length = clock_utc_text(entry->text);
    size_t room = sizeof entry->text - length - 1; /* less the line's end */
    int added = snprintf(entry->text + length, room, " %s ", level_names[level]);

    assert(added > 0 && (size_t)added < room);
    length += (size_t)added;
    room -= (size_t)added;
    added = vsnprintf(entry->text + length, room, format, arguments);
    assert(added >= 0);
    size_t body = (size_t)added < room ? (size_t)added : room - 1;
    defuse(entry->text + length, body);
    length += body;
    entry->text[length++] = '\n';
    entry->bytes = (uint32_t)length;
}

void log_line(enum log_level level, const char *format, ...)
{
    struct log_entry entry;
    va_list arguments;

    assert(level <= LOG_DEBUG);
    if (!log_is_on(level)) {
        return;
    }
    va_start(arguments, format);
    compose(&entry, level, format, arguments);
    va_end(arguments);
    if (!atomic_load_explicit(&state.is_running, memory_order_acquire)) {
        write_line(&entry);
    } else if (crowd_ring_push(&state.ring, &entry)) {
        wake_up(&state.wake);
    } else {
        atomic_fetch_add_explicit(&state.dropped_count, 1, memory_order_relaxed);
    }
}

static void compose_own(struct log_entry *entry, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void compose_own(struct log_entry *entry, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    compose(entry, LOG_WARN, format, arguments);
    va_end(arguments);
}

/* Says once in a while that lines were lost; counts those that are lost by saying so in the next round. */
static void tell_dropped(void)
{
    struct log_entry entry;
    uint64_t dropped = log_dropped_count();

    if (dropped != state.told_dropped_count) {
        compose_own(&entry, "log_dropped lines=%llu total=%llu",
                    (unsigned long long)(dropped - state.told_dropped_count), (unsigned long long)dropped);
        state.told_dropped_count = dropped;
        write_line(&entry);
    }
}

static void write_queued(void *argument)
{
    struct log_entry entry;

    (void)argument;
    for (;;) {
        uint32_t seen = wake_ticket(&state.wake);
        bool is_last = atomic_load_explicit(&state.is_stopping, memory_order_acquire);
        while (crowd_ring_pop(&state.ring, &entry)) {
            write_line(&entry);
        }
        tell_dropped();
        if (is_last) {
            return;
        }
        (void)wake_wait(&state.wake, seen, -1);
    }
}

void log_start(void)
{
    assert(!atomic_load(&state.is_running));
    assert(pools_stride_bytes(POOL_LOG_LINE) * pools_capacity(POOL_LOG_LINE) >=
           crowd_ring_bytes(pools_capacity(POOL_LOG_LINE), sizeof(struct log_entry)));

    /* A vanished reader of standard error is an error of write, not a signal. */
    (void)signal(SIGPIPE, SIG_IGN);
    crowd_ring_open(&state.ring, pools_base(POOL_LOG_LINE), pools_capacity(POOL_LOG_LINE), sizeof(struct log_entry));
    atomic_store(&state.is_stopping, false);
    thread_start(&state.thread, "log", THREAD_LOW, write_queued, NULL);
    atomic_store_explicit(&state.is_running, true, memory_order_release);
}

void log_stop(void)
{
    if (!atomic_load(&state.is_running)) {
        return;
    }
    atomic_store_explicit(&state.is_running, false, memory_order_release);
    atomic_store_explicit(&state.is_stopping, true, memory_order_release);
    wake_up(&state.wake);
    thread_join(&state.thread);
}

uint64_t log_dropped_count(void)
{
    return atomic_load_explicit(&state.dropped_count, memory_order_relaxed);
}
