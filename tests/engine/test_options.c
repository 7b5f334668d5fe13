/* Properties of engine/options.c: the table is sound, argparse's habits hold, every refusal names the flag. */
#include "engine/options.h"
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct options options;
static struct options_error error;

/* Parses `ashlar` plus the words of `line`, separated by single spaces; "''" is an empty argument. */
static bool parse(const char *line)
{
    static char text[2048];
    static char *arguments[256];
    int count = 1;

    arguments[0] = (char[]){"ashlar"};
    (void)snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        arguments[count++] = strcmp(word, "''") == 0 ? word + 2 : word;
    }
    return options_parse(&options, count, arguments, NULL, &error);
}

#define MODEL "--model-path M "

static bool is_refused(const char *line, const char *reason)
{
    bool is_parsed = parse(line);
    bool is_named = strstr(error.text, reason) != NULL;

    if (is_parsed || !is_named) {
        (void)fprintf(stderr, "%s: wanted \"%s\", got \"%s\"\n", line, reason, error.text);
    }
    return !is_parsed && is_named;
}

static void unset_flags_have_their_defaults(void)
{
    CU_ASSERT_FATAL(parse(MODEL));
    CU_ASSERT(options.command == COMMAND_SERVE);
    CU_ASSERT(strcmp(options.host, "127.0.0.1") == 0);
    CU_ASSERT(options.port == 30000);
    CU_ASSERT(options.large_body_bytes == 32 * 1024 * 1024);
    CU_ASSERT(options.large_bodies == 4);
    CU_ASSERT(options.max_source_pixels == 64 * 1024 * 1024);
    CU_ASSERT(options.header_timeout == 10 && options.body_timeout == 30 && options.body_wait == 60);
    CU_ASSERT(options.write_timeout == 60 && options.keep_alive == 75);
    CU_ASSERT(options.vlm_cache_size_mb == 100);
    CU_ASSERT(options.api_key == NULL);
    for (int i = 0; i < OPTION_ROWS; i++) {
        CU_ASSERT(options.is_given[i] == (i == OPTION_model_path));
    }
}

static void the_first_argument_chooses_the_command(void)
{
    CU_ASSERT(parse("serve " MODEL) && options.command == COMMAND_SERVE);
    CU_ASSERT(parse("plan " MODEL) && options.command == COMMAND_PLAN);
    CU_ASSERT(parse("ask --model M why?") && options.command == COMMAND_ASK);
    CU_ASSERT(strcmp(options.question, "why?") == 0);
    CU_ASSERT(parse("ask --model M --image a --image b -- --strange?") && options.image.count == 2);
    CU_ASSERT(strcmp(options.question, "--strange?") == 0);
    CU_ASSERT(strcmp(options.image.paths[1], "b") == 0);
    CU_ASSERT(is_refused("ask --model M", "question"));
    CU_ASSERT(is_refused("ask --model M one two", "two"));
    CU_ASSERT(is_refused("run " MODEL, "run"));
    CU_ASSERT(is_refused("serve " MODEL " stray", "stray"));
}

static void help_and_version_come_before_what_follows(void)
{
    CU_ASSERT(parse("--help") && options.command == COMMAND_HELP);
    CU_ASSERT(parse("-h") && options.command == COMMAND_HELP);
    CU_ASSERT(parse("plan --help --no-such-flag") && options.command == COMMAND_HELP);
    CU_ASSERT(parse("--version") && options.command == COMMAND_VERSION);
    CU_ASSERT(parse("help") && options.command == COMMAND_HELP);
    CU_ASSERT(is_refused("--no-such-flag --help", "--no-such-flag"));
}

static void values_may_follow_an_equals_sign(void)
{
    CU_ASSERT(parse("--model-path=M --port=81") && options.port == 81);
    CU_ASSERT(parse("--model-path=a=b") && strcmp(options.model_path, "a=b") == 0);
    CU_ASSERT(parse(MODEL "--api-key=") && options.api_key[0] == '\0');
    CU_ASSERT(is_refused(MODEL "--enable-metrics=yes", "--enable-metrics"));
}

static void the_last_of_several_wins(void)
{
    CU_ASSERT(parse(MODEL "--port 1 --port 2 --port=3") && options.port == 3);
    CU_ASSERT(is_refused(MODEL "--port 1 --port abc", "--port"));
}

static void aliases_are_the_same_flag(void)
{
    CU_ASSERT(parse("--model M") && strcmp(options.model_path, "M") == 0);
    CU_ASSERT(parse(MODEL "--tp 1") && options.is_given[OPTION_tp_size]);
    CU_ASSERT(parse(MODEL "--tensor-parallel-size 1") && options.tp_size == 1);
    CU_ASSERT(is_refused(MODEL "--tp 2", "--tp: 2"));
}

static void unambiguous_beginnings_are_enough(void)
{
    CU_ASSERT(parse("--model-p M --por 82") && options.port == 82);
    CU_ASSERT(parse(MODEL "--mem 0.5") && options.mem_fraction_static == 0.5);
    CU_ASSERT(parse(MODEL "--tensor 1"));
    CU_ASSERT(is_refused(MODEL "--max 5", "ambiguous"));
    CU_ASSERT(is_refused(MODEL "--context- x", "--context-length"));
    CU_ASSERT(parse(MODEL "--dis 5") == false && strstr(error.text, "--disable-") != NULL);
    CU_ASSERT(is_refused(MODEL "-- -p", "-p"));
    CU_ASSERT(is_refused(MODEL "-p", "-p"));
    CU_ASSERT(is_refused(MODEL "--=5", "--"));
    /* a whole name wins over longer ones that begin with it */
    CU_ASSERT(parse(MODEL "--log-requests --log-level debug") && options.log_requests);
    CU_ASSERT(strcmp(options.log_level, "debug") == 0);
}

static void stray_arguments_are_refused_by_name(void) /* g15 */
{
    CU_ASSERT(is_refused(MODEL "--no-such-flag", "--no-such-flag"));
    CU_ASSERT(is_refused(MODEL "--port", "--port needs a value"));
    CU_ASSERT(is_refused("--model-path --port 1", "--model-path needs a value"));
    CU_ASSERT(is_refused(MODEL "--port=abc", "--port: \"abc\""));
    CU_ASSERT(is_refused(MODEL "''", "unknown argument"));
    CU_ASSERT(is_refused("''", "unknown command"));
    CU_ASSERT(is_refused("", "--model-path is missing"));
    CU_ASSERT(is_refused("--port 1", "--model-path is missing"));
    CU_ASSERT(is_refused(MODEL "--port ''", "--port"));
}

static void fractions_at_the_edges(void) /* g04 */
{
    CU_ASSERT(parse(MODEL "--mem-fraction-static 0.01") && options.mem_fraction_static == 0.01);
    CU_ASSERT(parse(MODEL "--mem-fraction-static 0.99") && options.mem_fraction_static == 0.99);
    CU_ASSERT(parse(MODEL "--mem-fraction-static 1.0") && options.mem_fraction_static == 1.0);
    static const char *const refused[] = {"0",   "0.0", "1.5", "-0.1", "nan", "abc", "90",  "90%",
                                          "inf", "",    ".",   "1e-1", "0x1", "1.",  "+0.5"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char line[128];
        (void)snprintf(line, sizeof line, MODEL "--mem-fraction-static=%s", refused[i]);
        if (strcmp(refused[i], "1.") == 0) {
            CU_ASSERT(parse(line)); /* as Python reads it */
        } else {
            CU_ASSERT(is_refused(line, "--mem-fraction-static"));
            CU_ASSERT(strstr(error.text, "from 0.01 to 1") != NULL);
        }
    }
}

static void sizes_take_suffixes_case_sensitively(void)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"7", 7},
                {"1k", 1000},
                {"2M", 2000000},
                {"3G", 3000000000},
                {"1Ki", 1024},
                {"5Mi", 5242880},
                {"24Gi", 25769803776},
                {"143771Mi", 150754820096},
                {"-1", -1},
                {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"",
                                      "K",
                                      "k",
                                      "1K",
                                      "1m",
                                      "1g",
                                      "1KI",
                                      "1ki",
                                      "1 k",
                                      "1.5G",
                                      "0x10",
                                      "--1",
                                      "1Gib",
                                      "1GiB",
                                      "1kk",
                                      "- 1",
                                      "9223372036854775808",
                                      "9223372036854775807k"};
    int64_t value = 0;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CU_ASSERT(options_size_parse(good[i].text, &value) && value == good[i].value);
    }
    value = 42;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT(!options_size_parse(bad[i], &value));
    }
    CU_ASSERT(value == 42);
    CU_ASSERT(parse(MODEL "--context-length 32Ki --device-memory 24Gi") && options.context_length == 32768);
    CU_ASSERT(options.device_memory == 25769803776);
    CU_ASSERT(is_refused(MODEL "--port 1k", "--port: \"1k\"")); /* a port is no size */
}

static void decimals_are_read_exactly(void)
{
    double value = 0;

    CU_ASSERT(options_decimal_parse("0.85", &value) && value == 0.85);
    CU_ASSERT(options_decimal_parse(".5", &value) && value == 0.5);
    CU_ASSERT(options_decimal_parse("-0.1", &value) && value == -0.1);
    CU_ASSERT(options_decimal_parse("0.000000000001", &value) && value == 0.000000000001);
    CU_ASSERT(!options_decimal_parse("1.2.3", &value));
    CU_ASSERT(!options_decimal_parse("12345678901234567890", &value));
    CU_ASSERT(!options_decimal_parse("0.00000000000000000000000000000000000001", &value));
}

static void negative_numbers_are_values_and_not_flags(void)
{
    CU_ASSERT(parse(MODEL "--chunked-prefill-size -1") && options.chunked_prefill_size == -1);
    CU_ASSERT(is_refused(MODEL "--chunked-prefill-size -2", "--chunked-prefill-size: -2 is out of range: from -1"));
    CU_ASSERT(is_refused(MODEL "--port -5", "--port: -5"));
}

static void ranges_are_named(void)
{
    CU_ASSERT(is_refused(MODEL "--port 65536", "from 0 to 65535"));
    CU_ASSERT(is_refused(MODEL "--threads 0", "--threads: 0 is out of range: from 1 to"));
    CU_ASSERT(is_refused(MODEL "--device gpu", "auto|cpu|cuda"));
    CU_ASSERT(is_refused(MODEL "--device cp", "none of"));
    CU_ASSERT(is_refused(MODEL "--device cuda", "not in this build"));
    CU_ASSERT(is_refused(MODEL "--device auto|cpu", "none of"));
    CU_ASSERT(is_refused(MODEL "--max-queued-requests 99999999999999999999", "--max-queued-requests"));
}

static void lists_take_words_until_the_next_flag(void)
{
    CU_ASSERT(parse(MODEL "--allowed-media-domains a b c --port 5") && options.port == 5);
    CU_ASSERT(is_refused(MODEL "--allowed-media-domains --port 5", "--allowed-media-domains needs a value"));
}

static void too_many_pictures_are_refused(void)
{
    char line[1500];
    size_t length = (size_t)snprintf(line, sizeof line, "ask --model M q");

    for (int i = 0; i < IMAGES_MAX; i++) {
        length += (size_t)snprintf(line + length, sizeof line - length, " --image x");
    }
    CU_ASSERT(parse(line) && options.image.count == IMAGES_MAX);
    (void)snprintf(line + length, sizeof line - length, " --image x");
    CU_ASSERT(is_refused(line, "--image: more than"));
}

static void the_environment_sets_what_it_may(void)
{
    char program[] = "ashlar", flag[] = "--model=M", cache[] = "SGLANG_VLM_CACHE_SIZE_MB=7", other[] = "PORT=5";
    char bad[] = "SGLANG_VLM_CACHE_SIZE_MB=many";
    char *arguments[] = {program, flag, NULL};
    char *environment[] = {other, cache, NULL};
    char *broken[] = {bad, NULL};

    CU_ASSERT(options_parse(&options, 2, arguments, environment, &error));
    CU_ASSERT(options.vlm_cache_size_mb == 7 && options.port == 30000);
    CU_ASSERT(!options_parse(&options, 2, arguments, broken, &error));
    CU_ASSERT(strstr(error.text, "SGLANG_VLM_CACHE_SIZE_MB") != NULL);
    CU_ASSERT(is_refused(MODEL "--SGLANG_VLM_CACHE_SIZE_MB 7", "unknown flag"));
}

/* Flags and aliases of the server that we replace: every one must be known. */
static const char *const known[] = {
    "--model-path",
    "--model",
    "--tokenizer-path",
    "--host",
    "--port",
    "--context-length",
    "--tp-size",
    "--tensor-parallel-size",
    "--tp",
    "--dp-size",
    "--mem-fraction-static",
    "--max-total-tokens",
    "--chunked-prefill-size",
    "--max-prefill-tokens",
    "--max-running-requests",
    "--max-queued-requests",
    "--schedule-policy",
    "--schedule-conservativeness",
    "--page-size",
    "--disable-radix-cache",
    "--radix-eviction-policy",
    "--dtype",
    "--kv-cache-dtype",
    "--quantization",
    "--load-format",
    "--json-model-override-args",
    "--random-seed",
    "--attention-backend",
    "--mm-attention-backend",
    "--sampling-backend",
    "--grammar-backend",
    "--cuda-graph-max-bs",
    "--cuda-graph-max-bs-decode",
    "--disable-cuda-graph",
    "--enable-mixed-chunk",
    "--disable-overlap-schedule",
    "--stream-interval",
    "--api-key",
    "--admin-api-key",
    "--served-model-name",
    "--chat-template",
    "--enable-cache-report",
    "--enable-metrics",
    "--tool-call-parser",
    "--reasoning-parser",
    "--sampling-defaults",
    "--preferred-sampling-params",
    "--allow-auto-truncate",
    "--log-requests",
    "--log-requests-level",
    "--log-requests-format",
    "--log-level",
    "--decode-log-interval",
    "--skip-server-warmup",
    "--watchdog-timeout",
    "--enable-deterministic-inference",
    "--crash-dump-folder",
    "--gc-threshold",
    "--gc-warning-threshold-secs",
    "--enable-memory-saver",
    "--enable-multimodal",
    "--disable-fast-image-processor",
    "--keep-mm-feature-on-device",
    "--mm-feature-transport",
    "--mm-process-config",
    "--limit-mm-data-per-request",
    "--mm-io-worker-num",
    "--mm-processor-worker-num",
    "--image-processor-backend",
    "--mm-preprocess-cache-size-mb",
    "--trust-mm-content-hashes",
    "--allowed-media-domains",
    "--media-url-max-file-size-mb",
    "--mm-enable-dp-encoder",
    "--enable-broadcast-mm-inputs-process",
    "--enable-prefix-mm-cache",
    "--enable-mm-global-cache",
    "--language-model-only",
    "--encoder-only",
    "--language-only",
    "--device",
    "--device-memory",
    "--threads",
    "--max-source-pixels",
    "--large-bodies",
    "--large-body-bytes",
    "--shutdown-grace",
    "--write-timeout",
    "--body-wait",
    "--header-timeout",
    "--keep-alive",
    "--step-budget-ms",
    "--allow-special-tokens-in-text",
    "--json",
    "--image",
};

/* A flag is known if it parses bare (a switch), or what it complains about is its value. */
static void every_flag_of_the_reference_is_known(void)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char line[128], complaint[128];
        (void)snprintf(line, sizeof line, MODEL "%s", known[i]);
        (void)snprintf(complaint, sizeof complaint, "%s needs a value", known[i]);
        CU_ASSERT(parse(line) || strstr(error.text, complaint) != NULL);
    }
}

static const struct {
    const char *name, *kind, *unit, *help;
    double minimum, maximum;
    bool works;
} table[] = {
#define WORKS                                                           true
#define IGNORED                                                         false
#define OPTION(field, name, kind, value, low, high, unit, status, help) {name, #kind, unit, help, low, high, status},
#define OPTION_ALIAS(name, field)
#define OPTION_ENV(name, field)
#include "engine/options_table.h"
};

static void every_row_is_sound(void)
{
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        bool is_switch = strcmp(table[i].kind, "SWITCH") == 0;
        CU_ASSERT(strcmp(options_name((enum option)i), table[i].name) == 0);
        CU_ASSERT(table[i].minimum <= table[i].maximum);
        CU_ASSERT(strlen(table[i].help) > 0);
        CU_ASSERT((strlen(table[i].unit) == 0) == is_switch);
        for (size_t j = 0; j < i; j++) {
            CU_ASSERT(strcmp(table[i].name, table[j].name) != 0);
        }
    }
}

/* Each row with bounds, at its bounds and just outside. */
static void bounds_of_every_row_hold(void)
{
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        const char *kind = table[i].kind;
        bool is_whole = strcmp(kind, "COUNT") == 0 || strcmp(kind, "TOKENS") == 0 || strcmp(kind, "BYTES") == 0;
        if (!is_whole || strncmp(table[i].name, "--", 2) != 0) {
            continue;
        }
        const double values[] = {table[i].minimum, table[i].maximum, table[i].minimum - 1, table[i].maximum + 1};
        for (int v = 0; v < 4; v++) {
            char line[128];
            (void)snprintf(line, sizeof line, MODEL "%s=%.0f", table[i].name, values[v]);
            CU_ASSERT(parse(line) == (v < 2));
            CU_ASSERT(v < 2 || strstr(error.text, table[i].name) != NULL);
        }
    }
}

static void help_names_every_flag_and_fits(void)
{
    static char text[OPTIONS_HELP_BYTES];
    char small[64];

    size_t length = options_help(text, sizeof text);
    CU_ASSERT(length == strlen(text) && length < sizeof text - 1);
    for (size_t i = 0; i < OPTION_ROWS; i++) {
        CU_ASSERT(strstr(text, table[i].name) != NULL);
        CU_ASSERT(strstr(text, table[i].help) != NULL);
    }
    CU_ASSERT(strstr(text, "--tensor-parallel-size") != NULL);
    CU_ASSERT(options_help(small, sizeof small) == sizeof small - 1);
}

/* What options_warn_ignored writes for a command line. */
static const char *warnings(const char *line)
{
    static char text[8192];
    int ends[2] = {-1, -1};
    size_t length = 0;
    ssize_t got;

    bool is_ready = parse(line) && pipe(ends) == 0;
    CU_ASSERT(is_ready);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        options_warn_ignored(&options);
        _exit(0);
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)got;
    }
    text[length] = '\0';
    (void)close(ends[0]);
    (void)waitpid(child, NULL, 0);
    return text;
}

static void what_has_no_meaning_warns_once(void)
{
    CU_ASSERT(strcmp(warnings(MODEL "--port 5 --enable-metrics --kv-cache-dtype bf16"), "") == 0);
    const char *text = warnings(MODEL "--schedule-policy lpm --schedule-policy lof --mm-io-worker-num 4");
    CU_ASSERT(strstr(text, "flag=--schedule-policy") != NULL && strstr(text, "flag=--mm-io-worker-num") != NULL);
    CU_ASSERT(strstr(strstr(text, "flag=--schedule-policy") + 1, "flag=--schedule-policy") == NULL);
    text = warnings(MODEL "--dtype half --kv-cache-dtype fp8_e4m3");
    CU_ASSERT(strstr(text, "flag=--dtype value=half used=bfloat16") != NULL);
    CU_ASSERT(strstr(text, "flag=--kv-cache-dtype value=fp8_e4m3 used=bfloat16") != NULL);
    CU_ASSERT(!options_is_float32(&options));
    text = warnings(MODEL "--dtype float32 --kv-cache-dtype bf16");
    CU_ASSERT(strstr(text, "used=float32") != NULL && options_is_float32(&options));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(unset_flags_have_their_defaults),
        CASE(the_first_argument_chooses_the_command),
        CASE(help_and_version_come_before_what_follows),
        CASE(values_may_follow_an_equals_sign),
        CASE(the_last_of_several_wins),
        CASE(aliases_are_the_same_flag),
        CASE(unambiguous_beginnings_are_enough),
        CASE(stray_arguments_are_refused_by_name),
        CASE(fractions_at_the_edges),
        CASE(sizes_take_suffixes_case_sensitively),
        CASE(decimals_are_read_exactly),
        CASE(negative_numbers_are_values_and_not_flags),
        CASE(ranges_are_named),
        CASE(lists_take_words_until_the_next_flag),
        CASE(too_many_pictures_are_refused),
        CASE(the_environment_sets_what_it_may),
        CASE(every_flag_of_the_reference_is_known),
        CASE(every_row_is_sound),
        CASE(bounds_of_every_row_hold),
        CASE(help_names_every_flag_and_fits),
        CASE(what_has_no_meaning_warns_once),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/options", cases, NULL);
}
