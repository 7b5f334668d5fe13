/* Properties of engine/start.c: the exit code is the given one, the message one line, and nobody refuses after the
 * seal. */
#include "engine/start.h"
#include "config.h"
#include "pools/seal.h"
#include "tests/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs `refuse` in a child; returns its wait status, and what it wrote to standard error. */
static int watch(void (*refuse)(void), char *text, size_t capacity)
{
    int pipe_ends[2], status = 0;
    size_t length = 0;
    ssize_t got;

    CU_ASSERT_FATAL(pipe(pipe_ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(pipe_ends[1], STDERR_FILENO);
        refuse();
        _exit(99);
    }
    (void)close(pipe_ends[1]);
    while ((got = read(pipe_ends[0], text + length, capacity - 1 - length)) > 0) {
        length += (size_t)got;
    }
    text[length] = '\0';
    (void)close(pipe_ends[0]);
    (void)waitpid(child, &status, 0);
    return status;
}

static void hold_more_stack_than_allowed(void)
{
    const struct rlimit limit = {.rlim_cur = 1 << 16, .rlim_max = 1 << 16};
    if (setrlimit(RLIMIT_STACK, &limit) == 0) {
        start_hold_stack(1 << 20);
    }
}

static void hold_more_stack_than_there_is_so_far(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0) {
        return;
    }
    limit.rlim_cur = 1 << 16;
    if (setrlimit(RLIMIT_STACK, &limit) == 0) {
        start_hold_stack(1 << 20);
    }
    (void)getrlimit(RLIMIT_STACK, &limit);
    _exit(limit.rlim_cur == 1 << 20 ? 42 : 43);
}

static void a_small_stack_grows_or_is_refused(void)
{
    char text[1024];
    int status = watch(hold_more_stack_than_there_is_so_far, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    status = watch(hold_more_stack_than_allowed, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == START_NO_MEMORY);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "1048576 bytes"));
}

static void refuse_shortly(void)
{
    start_refuse(START_BAD_MODEL, "%s: %s", "config.json", start_errno_text(ENOENT));
}

static void refuse_at_length(void)
{
    static char long_text[3 * LOG_LINE_BYTES_MAX];

    memset(long_text, 'x', sizeof long_text - 1);
    start_refuse(START_USAGE, "%s", long_text);
}

static void refuse_after_the_seal(void)
{
    seal_close();
    start_refuse(START_USAGE, "too late");
}

static void refuse_to_nobody(void)
{
    (void)close(STDERR_FILENO);
    start_refuse(START_NO_MEMORY, "nobody hears this");
}

static void hold_closed_streams(void)
{
    int kept = open("/dev/null", O_RDONLY);

    (void)close(STDIN_FILENO);
    (void)close(STDERR_FILENO);
    start_hold_streams();
    int next = open("/dev/null", O_RDONLY);
    _exit(next > kept && write(STDERR_FILENO, "x", 1) == 1 && fcntl(STDIN_FILENO, F_GETFD) == 0 ? 0 : 1);
}

static void print_to_a_closed_pipe(void)
{
    int pipe_ends[2];

    (void)signal(SIGPIPE, SIG_IGN);
    if (pipe(pipe_ends) == 0 && close(pipe_ends[0]) == 0 && dup2(pipe_ends[1], STDOUT_FILENO) >= 0) {
        start_print("text", 4);
    }
    _exit(START_OK);
}

static void code_and_message_arrive(void)
{
    static char text[8192];

    int status = watch(refuse_shortly, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    CU_ASSERT(strcmp(text, "ashlar: config.json: No such file or directory\n") == 0);
}

static void long_messages_are_cut(void)
{
    static char text[8192];

    int status = watch(refuse_at_length, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    CU_ASSERT(strlen(text) < LOG_LINE_BYTES_MAX + 16 && text[strlen(text) - 1] == '\n');
}

static void after_the_seal_it_is_a_bug(void)
{
    static char text[8192];

    int status = watch(refuse_after_the_seal, text, sizeof text);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void nobody_has_to_listen(void)
{
    static char text[8192];

    int status = watch(refuse_to_nobody, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    status = watch(print_to_a_closed_pipe, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void no_file_gets_the_number_of_a_stream(void)
{
    static char text[8192];

    int status = watch(hold_closed_streams, text, sizeof text);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void every_errno_has_a_text(void)
{
    for (int i = -1; i < 5000; i++) {
        CU_ASSERT(strlen(start_errno_text(i)) > 0);
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(code_and_message_arrive), CASE(long_messages_are_cut),  CASE(after_the_seal_it_is_a_bug),
        CASE(nobody_has_to_listen),    CASE(every_errno_has_a_text), CASE(no_file_gets_the_number_of_a_stream),
        CASE(a_small_stack_grows_or_is_refused),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/start", cases, NULL);
}
