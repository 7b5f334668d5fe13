/* Properties of engine/log.c: lines are whole and in order, strangers cannot forge them, a dead reader stops nobody. */
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include "engine/log.h"
#include "tests/harness.h"
#include "tests/small_plan.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char text[4 * 1024 * 1024];

/* Runs `run` in a child whose standard error is a file; returns its wait status, the file's bytes are in `text`. */
static int capture(void (*run)(void))
{
    char path[] = "/tmp/ashlar-log-XXXXXX";
    int file = mkstemp(path), status = 1;
    pid_t child = fork();

    if (child == 0) {
        (void)dup2(file, STDERR_FILENO);
        run();
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    long length = harness_read(path, text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    (void)close(file);
    (void)unlink(path);
    return status;
}

static int count_of(const char *word)
{
    int count = 0;

    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        count++;
    }
    return count;
}

static void log_before_and_after_start(void)
{
    log_info("first n=%d", 1);
    log_start();
    log_info("second n=%d", 2);
    log_stop();
    log_info("third n=%d", 3);
    log_debug("never");
    log_set_level(LOG_ERROR);
    log_warn("never");
    log_error("fourth");
}

static void lines_come_in_order_and_by_level(void)
{
    CU_ASSERT(capture(log_before_and_after_start) == 0);
    const char *first = strstr(text, " info first n=1\n"), *second = strstr(text, " info second n=2\n");
    const char *third = strstr(text, " info third n=3\n"), *fourth = strstr(text, " error fourth\n");
    CU_ASSERT(first != NULL && second > first && third > second && fourth > third);
    CU_ASSERT(count_of("never") == 0);
    CU_ASSERT(count_of("\n") == 4);
    CU_ASSERT(text[4] == '-' && text[10] == 'T');
}

static void log_strange_text(void)
{
    static char long_text[2 * LOG_LINE_BYTES_MAX];

    memset(long_text, 'y', sizeof long_text - 1);
    log_info("user text=\"%s\"", "a\nb\rc\x1b[2Jd\x7f\xc3\xa9");
    log_info("long %s", long_text);
}

static void strangers_cannot_forge_a_line(void)
{
    CU_ASSERT(capture(log_strange_text) == 0);
    CU_ASSERT(count_of("\n") == 2);
    CU_ASSERT(strstr(text, "a?b?c?[2Jd?\xc3\xa9\"") != NULL);
    CU_ASSERT(strlen(text) < 2 * LOG_LINE_BYTES_MAX);
}

enum { WRITERS = 3, LINES = 2000 };

static void *write_lines(void *argument)
{
    for (int i = 0; i < LINES; i++) {
        log_info("writer=%s i=%05d.", (const char *)argument, i);
        if (i % 16 == 0) {
            (void)usleep(100);
        }
    }
    return NULL;
}

static void log_from_many_threads(void)
{
    pthread_t writers[WRITERS];
    static char names[WRITERS][2] = {"a", "b", "c"};

    log_start();
    for (int i = 0; i < WRITERS; i++) {
        (void)pthread_create(&writers[i], NULL, write_lines, names[i]);
    }
    for (int i = 0; i < WRITERS; i++) {
        (void)pthread_join(writers[i], NULL);
    }
    log_stop();
    log_info("end dropped=%llu.", (unsigned long long)log_dropped_count());
}

static void many_threads_write_whole_lines_and_drops_are_counted(void)
{
    CU_ASSERT(capture(log_from_many_threads) == 0);
    const char *end = strstr(text, "end dropped=");
    CU_ASSERT_FATAL(end != NULL);
    unsigned long dropped = strtoul(end + 12, NULL, 10);
    CU_ASSERT(count_of("writer=") + (int)dropped == WRITERS * LINES);
    CU_ASSERT(count_of("writer=") == count_of(".\n") - 1);
    CU_ASSERT(dropped == 0 || count_of("log_dropped lines=") > 0);
}

static void log_to_a_full_pipe(void)
{
    int ends[2];

    if (pipe(ends) != 0 || fcntl(ends[1], F_SETPIPE_SZ, 4096) < 0 || dup2(ends[1], STDERR_FILENO) < 0) {
        _exit(1);
    }
    log_start();
    for (int i = 0; i < 10 * LOG_LINES_MAX; i++) {
        log_info("nobody reads i=%d", i); /* must not wait */
    }
    log_stop(); /* nor for ever */
    _exit(log_dropped_count() > 9 * LOG_LINES_MAX ? 0 : 1);
}

static void log_to_a_closed_pipe(void)
{
    int ends[2];

    if (pipe(ends) != 0 || close(ends[0]) != 0 || dup2(ends[1], STDERR_FILENO) < 0) {
        _exit(1);
    }
    log_start();
    for (int i = 0; i < 100; i++) {
        log_info("nobody is there");
    }
    log_stop();
    _exit(log_dropped_count() >= 100 ? 0 : 1);
}

static void log_to_nothing(void)
{
    (void)close(STDERR_FILENO);
    log_info("early");
    log_start();
    log_info("late");
    log_stop();
    _exit(log_dropped_count() >= 2 ? 0 : 1);
}

static void log_to_a_full_disk(void)
{
    int full = open("/dev/full", O_WRONLY);

    if (full < 0 || dup2(full, STDERR_FILENO) < 0) {
        _exit(1);
    }
    log_start();
    log_info("no room");
    log_stop();
    _exit(log_dropped_count() >= 1 ? 0 : 1);
}

static void a_dead_reader_stops_nobody(void)
{
    CU_ASSERT(capture(log_to_a_full_pipe) == 0);
    CU_ASSERT(capture(log_to_a_closed_pipe) == 0);
    CU_ASSERT(capture(log_to_nothing) == 0);
    CU_ASSERT(capture(log_to_a_full_disk) == 0);
}

static void levels_have_their_names(void)
{
    enum log_level level = LOG_INFO;

    CU_ASSERT(log_level_parse("debug", &level) && level == LOG_DEBUG);
    CU_ASSERT(log_level_parse("warning", &level) && level == LOG_WARN);
    CU_ASSERT(log_level_parse("critical", &level) && level == LOG_ERROR);
    CU_ASSERT(!log_level_parse("loud", &level) && level == LOG_ERROR);
    CU_ASSERT(log_is_on(LOG_INFO) && !log_is_on(LOG_DEBUG));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(lines_come_in_order_and_by_level),
        CASE(strangers_cannot_forge_a_line),
        CASE(many_threads_write_whole_lines_and_drops_are_counted),
        CASE(a_dead_reader_stops_nobody),
        CASE(levels_have_their_names),
        {NULL, NULL},
    };
    return small_plan_open() ? harness_run(argc, argv, "engine/log", cases, NULL) : 2;
}
