/* Properties of engine/ask.c: the answer alone goes to standard output, whole; as JSON it parses; no answer is exit
 * code 1. */
#include "engine/ask.h"
#include "engine/json.h"
#include "engine/start.h"
#include "tests/engine/booted.h"

#include <fcntl.h>

static char output[64 * 1024];

/* `ashlar ask` in a child; its standard output goes to `output`. Returns the exit code. */
static int ask(const char *question, const char *picture, bool is_json)
{
    const char *words[] = {"ashlar",
                           "ask",
                           "--model-path",
                           "demo/model",
                           "--context-length",
                           "512",
                           "--max-source-pixels",
                           "64Ki",
                           "--large-bodies",
                           "1",
                           "--large-body-bytes",
                           "128Ki",
                           "--device-memory",
                           "60Mi",
                           "--threads",
                           "1",
                           question,
                           picture == NULL ? "--threads=1" : "--image",
                           picture == NULL ? "--temperature=0" : picture,
                           is_json ? "--json" : "--temperature=0"};
    char *environment[] = {(char *)(uintptr_t) "SGLANG_VLM_CACHE_SIZE_MB=1", NULL};
    int pipes[2], status = 0;

    CU_ASSERT_FATAL(pipe(pipes) == 0);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        static struct options options;
        struct options_error error;
        (void)dup2(pipes[1], STDOUT_FILENO);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        (void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        log_set_level(LOG_ERROR);
        if (!options_parse(&options, sizeof words / sizeof words[0], (char *const *)(uintptr_t)words, environment,
                           &error)) {
            _exit(START_USAGE);
        }
        boot_plan(&booted, &options);
        boot_carve(&booted);
        boot_load(&booted);
        struct request *request = ask_prepare(&booted);
        (void)boot_seal(&booted);
        int code = ask_run(&booted, request);
        seal_end();
        boot_stop(&booted);
        _exit(code);
    }
    (void)close(pipes[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(pipes[0], output + length, sizeof output - 1 - length)) > 0) {
        length += (size_t)got;
    }
    output[length] = '\0';
    (void)close(pipes[0]);
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_answer_is_printed_whole_and_alone(void)
{
    CU_ASSERT_EQUAL(ask("What is the number of shapes?", "demo/samples/shapes.png", false), 0);
    CU_ASSERT_STRING_EQUAL(output, "There are 3 shapes.\n");
}

static void as_json_it_parses(void)
{
    struct json_reader reader;
    struct json_event event;
    bool has_answer = false;

    CU_ASSERT_EQUAL(ask("Write the shapes as JSON.", "demo/samples/number-and-shapes.png", true), 0);
    json_open(&reader, output, strlen(output));
    do {
        CU_ASSERT_FATAL(json_next(&reader, &event) == ERR_OK);
        has_answer = has_answer ||
                     (event.kind == JSON_STRING && event.bytes > 12 && memcmp(event.text, "{\"objects\":", 11) == 0);
    } while (event.kind != JSON_END);
    CU_ASSERT(has_answer);
}

static void a_text_needs_no_picture(void)
{
    CU_ASSERT_EQUAL(ask("Hello \"you\"\n", NULL, false), 0);
    CU_ASSERT(strlen(output) > 5);
}

static void without_an_answer_the_exit_code_says_so(void)
{
    CU_ASSERT_EQUAL(ask("What is it?", "demo/model/config.json", false), 1);
    CU_ASSERT_EQUAL(strlen(output), 0);
    CU_ASSERT_EQUAL(ask("What is it?", "demo/samples/none.png", false), START_USAGE);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_answer_is_printed_whole_and_alone),
        CASE(as_json_it_parses),
        CASE(a_text_needs_no_picture),
        CASE(without_an_answer_the_exit_code_says_so),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/ask", cases, NULL);
}
