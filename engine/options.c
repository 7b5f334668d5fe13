/* options: the command line, parsed as argparse does, from the rows of engine/options_table.h.
 *
 * Always true: a field is written only after its value passed its row's checks, so a refused line leaves no half-read
 * number.
 */
#include "engine/options.h"

#include "engine/log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum kind {
    KIND_SWITCH,
    KIND_COUNT,
    KIND_TOKENS,
    KIND_BYTES,
    KIND_FRACTION,
    KIND_SECONDS,
    KIND_TEXT,
    KIND_CHOICE,
    KIND_LIST,
    KIND_FILES
};
enum status { STATUS_WORKS, STATUS_IGNORED };

struct option_row {
    const char *name, *default_text, *unit, *help;
    enum kind kind;
    enum status status;
    double minimum, maximum; /* below 2^53, so whole numbers are exact */
    size_t field;            /* its offset in struct options */
};

static const struct option_row rows[OPTION_ROWS] = {
#define OPTION(row_field, row_name, row_kind, default_value, row_minimum, row_maximum, row_unit, row_status, row_help) \
    {.name = row_name,                                                                                                 \
     .default_text = #default_value,                                                                                   \
     .unit = row_unit,                                                                                                 \
     .help = row_help,                                                                                                 \
     .kind = KIND_##row_kind,                                                                                          \
     .status = STATUS_##row_status,                                                                                    \
     .minimum = (double)(row_minimum),                                                                                 \
     .maximum = (double)(row_maximum),                                                                                 \
     .field = offsetof(struct options, row_field)},
#define OPTION_ALIAS(name, row_field)
#define OPTION_ENV(name, row_field)
#include "engine/options_table.h"
};

static const struct options defaults = {
    .command = COMMAND_SERVE,
#define OPTION(row_field, name, kind, default_value, minimum, maximum, unit, status, help) .row_field = default_value,
#define OPTION_ALIAS(name, row_field)
#define OPTION_ENV(name, row_field)
#include "engine/options_table.h"
};

/* Two flags that are no fields. */
enum { OPTION_HELP = OPTION_ROWS, OPTION_VERSION };

/* Every spelling. Rows of the environment are among them, but nothing that begins with "--" can match those. */
static const struct option_spelling {
    const char *name;
    int option; /* enum option, or one of the two above */
} spellings[] = {
    {"--help", OPTION_HELP},
    {"-h", OPTION_HELP},
    {"--version", OPTION_VERSION},
#define OPTION(row_field, name, kind, default_value, minimum, maximum, unit, status, help) {name, OPTION_##row_field},
#define OPTION_ALIAS(name, row_field)                                                      {name, OPTION_##row_field},
#define OPTION_ENV(name, row_field)
#include "engine/options_table.h"
};

static const struct option_spelling variables[] = {
#define OPTION(row_field, name, kind, default_value, minimum, maximum, unit, status, help)
#define OPTION_ALIAS(name, row_field)
#define OPTION_ENV(name, row_field) {name, OPTION_##row_field},
#include "engine/options_table.h"
};

enum {
    SPELLING_COUNT = sizeof spellings / sizeof spellings[0],
    VARIABLE_COUNT = sizeof variables / sizeof variables[0]
};

/* One walk along the arguments. */
struct parse {
    struct options *options;
    struct options_error *error;
    char *const *arguments;
    int count, at;
    bool only_words; /* after "--" */
};

static bool refuse(struct options_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Records why; false, for `return`. */
static bool refuse(struct options_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    assert(length > 0);
    return false;
}

const char *options_name(enum option option)
{
    assert(option < OPTION_ROWS);
    return rows[option].name;
}

static void *field_of(struct options *options, const struct option_row *row)
{
    assert(row->field < sizeof *options);
    return (char *)options + row->field;
}

/* Numbers. */

/* What a suffix multiplies by; 0 if it is none. */
static int64_t suffix_factor(const char *suffix)
{
    static const struct {
        const char *suffix;
        int64_t factor;
    } factors[] = {{"", 1},         {"k", 1000},     {"M", 1000000},  {"G", 1000000000},       {"T", 1000000000000},
                   {"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", (int64_t)1 << 40}};

    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        if (strcmp(suffix, factors[i].suffix) == 0) {
            return factors[i].factor;
        }
    }
    return 0;
}

bool options_size_parse(const char *text, int64_t *value)
{
    assert(text != NULL && value != NULL);
    bool is_negative = text[0] == '-';
    const char *at = text + is_negative;
    int64_t number = 0;

    if (*at < '0' || *at > '9') {
        return false;
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, *at - '0', &number)) {
            return false;
        }
    }
    int64_t factor = suffix_factor(at);
    if (factor == 0 || __builtin_mul_overflow(number, factor, &number)) {
        return false;
    }
    *value = is_negative ? -number : number;
    return true;
}

bool options_decimal_parse(const char *text, double *value)
{
    enum { DIGITS_MAX = 15 }; /* so that mantissa and power of ten are exact, and their quotient correctly rounded */
    double mantissa = 0, scale = 1;
    int digits = 0, digits_seen = 0;

    assert(text != NULL && value != NULL);
    const char *at = text + (text[0] == '-');
    for (bool is_behind_point = false; *at != '\0'; at++) {
        if (*at == '.' && !is_behind_point) {
            is_behind_point = true;
            continue;
        }
        if (*at < '0' || *at > '9') {
            return false;
        }
        digits_seen++;
        digits += digits > 0 || *at != '0';
        if (digits > DIGITS_MAX) {
            return false;
        }
        mantissa = mantissa * 10 + (*at - '0');
        scale = is_behind_point ? scale * 10 : scale;
        if (scale > 1e22) {
            return false;
        }
    }
    if (digits_seen == 0) {
        return false;
    }
    *value = text[0] == '-' ? -(mantissa / scale) : mantissa / scale;
    return true;
}

/* Values. */

static bool store_whole(struct options *options, const struct option_row *row, const char *name, const char *text,
                        struct options_error *error)
{
    int64_t value = 0;
    bool takes_suffix = row->kind != KIND_COUNT;

    bool is_number = options_size_parse(text, &value);
    char last = text[0] == '\0' ? '\0' : text[strlen(text) - 1];
    if (!is_number || (!takes_suffix && (last < '0' || last > '9'))) {
        return refuse(error, "%s: \"%s\" is not a whole number%s (from %.0f to %.0f)", name, text,
                      takes_suffix ? ", with k, M, G, Ki, Mi or Gi behind it if you like" : "", row->minimum,
                      row->maximum);
    }
    if ((double)value < row->minimum || (double)value > row->maximum) {
        return refuse(error, "%s: %s is out of range: from %.0f to %.0f", name, text, row->minimum, row->maximum);
    }
    memcpy(field_of(options, row), &value, sizeof value);
    return true;
}

static bool store_decimal(struct options *options, const struct option_row *row, const char *name, const char *text,
                          struct options_error *error)
{
    double value = 0;

    if (!options_decimal_parse(text, &value)) {
        return refuse(error, "%s: \"%s\" is not a decimal number (from %g to %g)", name, text, row->minimum,
                      row->maximum);
    }
    if (!(value >= row->minimum && value <= row->maximum)) {
        return refuse(error, "%s: %s is out of range: from %g to %g", name, text, row->minimum, row->maximum);
    }
    memcpy(field_of(options, row), &value, sizeof value);
    return true;
}

/* True if `word` is one of `choices`, separated by |. */
static bool is_choice(const char *choices, const char *word)
{
    size_t word_bytes = strlen(word);

    for (const char *at = choices; word_bytes > 0; at++) {
        size_t bytes = strcspn(at, "|");
        if (bytes == word_bytes && strncmp(at, word, bytes) == 0) {
            return true;
        }
        at += bytes;
        if (*at == '\0') {
            break;
        }
    }
    return false;
}

static bool store_file(struct options *options, const struct option_row *row, const char *name, const char *text,
                       struct options_error *error)
{
    struct option_files *files = field_of(options, row);

    if (files->count == IMAGES_MAX) {
        return refuse(error, "%s: more than %d", name, IMAGES_MAX);
    }
    files->paths[files->count++] = text;
    return true;
}

/* Checks and stores one value; `name` is the flag as the user wrote it. */
static bool store(struct options *options, int option, const char *name, const char *text, struct options_error *error)
{
    assert(option >= 0 && option < OPTION_ROWS);
    const struct option_row *row = &rows[option];
    bool is_stored = true;

    switch (row->kind) {
    case KIND_SWITCH:
        memcpy(field_of(options, row), &(bool){true}, sizeof(bool));
        break;
    case KIND_COUNT:
    case KIND_TOKENS:
    case KIND_BYTES:
        is_stored = store_whole(options, row, name, text, error);
        break;
    case KIND_FRACTION:
    case KIND_SECONDS:
        is_stored = store_decimal(options, row, name, text, error);
        break;
    case KIND_CHOICE:
        if (!is_choice(row->unit, text)) {
            return refuse(error, "%s: \"%s\" is none of %s", name, text, row->unit);
        }
        memcpy(field_of(options, row), &text, sizeof text);
        break;
    case KIND_TEXT:
    case KIND_LIST:
        memcpy(field_of(options, row), &text, sizeof text);
        break;
    case KIND_FILES:
        is_stored = store_file(options, row, name, text, error);
        break;
    }
    options->is_given[option] = options->is_given[option] || is_stored;
    return is_stored;
}

/* Flags. */

/* Finds a flag by its whole name or an unambiguous beginning; -1 with `error` filled otherwise. */
static int find_spelling(const char *text, size_t bytes, struct options_error *error)
{
    int found = -1;

    assert(bytes > 0);
    for (int i = 0; i < SPELLING_COUNT; i++) {
        if (strncmp(spellings[i].name, text, bytes) != 0) {
            continue;
        }
        if (spellings[i].name[bytes] == '\0') {
            return i;
        }
        if (found >= 0 && spellings[found].option != spellings[i].option) {
            (void)refuse(error, "ambiguous flag %.*s: could be %s or %s", (int)bytes, text, spellings[found].name,
                         spellings[i].name);
            found = -2; /* go on: a whole name may follow */
        } else if (found == -1) {
            found = i;
        }
    }
    if (found == -1) {
        (void)refuse(error, "unknown flag %.*s (ashlar --help lists all)", (int)bytes, text);
    }
    return found < 0 ? -1 : found;
}

/* As argparse tells: a lone "-", or a negative number, is a value; anything else that begins with "-" is a flag. */
static bool looks_like_flag(const char *argument)
{
    double number;

    return argument[0] == '-' && argument[1] != '\0' && !options_decimal_parse(argument, &number);
}

static bool parse_flag(struct parse *parse, const char *argument)
{
    const char *equals = argument[1] == '-' ? strchr(argument, '=') : NULL;
    size_t bytes = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
    int spelling = bytes < 3 && strcmp(argument, "-h") != 0 ? -1 : find_spelling(argument, bytes, parse->error);

    if (spelling < 0) {
        return bytes >= 3 ? false : refuse(parse->error, "unknown flag %s (ashlar --help lists all)", argument);
    }
    const char *name = spellings[spelling].name;
    int option = spellings[spelling].option;
    bool takes_none = option >= OPTION_ROWS || rows[option].kind == KIND_SWITCH;
    if (takes_none && equals != NULL) {
        return refuse(parse->error, "%s takes no value, but got \"%s\"", name, equals + 1);
    }
    if (option >= OPTION_ROWS) {
        parse->options->command = option == OPTION_HELP ? COMMAND_HELP : COMMAND_VERSION;
        return true;
    }
    if (takes_none || equals != NULL) {
        return store(parse->options, option, name, takes_none ? "" : equals + 1, parse->error);
    }
    bool is_list = rows[option].kind == KIND_LIST;
    int taken = 0;
    while (parse->at < parse->count && !looks_like_flag(parse->arguments[parse->at]) && (taken == 0 || is_list)) {
        if (!store(parse->options, option, name, parse->arguments[parse->at], parse->error)) {
            return false;
        }
        parse->at++;
        taken++;
    }
    return taken > 0 || refuse(parse->error, "%s needs a value (%s)", name, rows[option].unit);
}

static bool parse_word(struct parse *parse, const char *word)
{
    if (parse->options->command != COMMAND_ASK || word[0] == '\0') {
        return refuse(parse->error, "unknown argument \"%s\"", word);
    }
    if (parse->options->question != NULL) {
        return refuse(parse->error, "one question at a time: \"%s\" is a second one (put it in quotes)", word);
    }
    parse->options->question = word;
    return true;
}

static bool parse_environment(struct options *options, char *const *environment, struct options_error *error)
{
    for (int i = 0; environment != NULL && environment[i] != NULL; i++) {
        for (int v = 0; v < VARIABLE_COUNT; v++) {
            size_t bytes = strlen(variables[v].name);
            if (strncmp(environment[i], variables[v].name, bytes) == 0 && environment[i][bytes] == '=' &&
                !store(options, variables[v].option, variables[v].name, environment[i] + bytes + 1, error)) {
                return false;
            }
        }
    }
    return true;
}

/* Takes the command, if the first argument is one. */
static bool parse_command(struct parse *parse)
{
    static const struct {
        const char *word;
        enum options_command command;
    } commands[] = {{"serve", COMMAND_SERVE}, {"plan", COMMAND_PLAN}, {"ask", COMMAND_ASK}, {"help", COMMAND_HELP}};

    if (parse->count < 2 || parse->arguments[1][0] == '-') {
        return true; /* flags only: serve */
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(parse->arguments[1], commands[i].word) == 0) {
            parse->options->command = commands[i].command;
            parse->at++;
            return true;
        }
    }
    return refuse(parse->error, "unknown command \"%s\": serve, plan or ask", parse->arguments[1]);
}

/* What no single value can show. */
static bool check_whole(const struct options *options, struct options_error *error)
{
    if (options->command == COMMAND_HELP || options->command == COMMAND_VERSION) {
        return true;
    }
    if (options->model_path == NULL || options->model_path[0] == '\0') {
        return refuse(error, "%s is missing: the folder of the model", rows[OPTION_model_path].name);
    }
    if (strcmp(options->device, "cuda") == 0) {
        return refuse(error, "%s: cuda is not in this build: auto or cpu", rows[OPTION_device].name);
    }
    if (options->command == COMMAND_ASK && options->question == NULL) {
        return refuse(error, "ask: the question is missing");
    }
    return true;
}

bool options_parse(struct options *options, int argument_count, char *const *arguments, char *const *environment,
                   struct options_error *error)
{
    struct parse parse = {.options = options, .error = error, .arguments = arguments, .count = argument_count, .at = 1};

    assert(options != NULL && error != NULL);
    assert(argument_count == 0 || arguments != NULL);
    *options = defaults;
    error->text[0] = '\0';
    if (!parse_environment(options, environment, error) || !parse_command(&parse)) {
        return false;
    }
    while (parse.at < parse.count && options->command != COMMAND_HELP && options->command != COMMAND_VERSION) {
        const char *argument = arguments[parse.at++];
        if (!parse.only_words && strcmp(argument, "--") == 0) {
            parse.only_words = true;
        } else if (parse.only_words || !looks_like_flag(argument)) {
            if (!parse_word(&parse, argument)) {
                return false;
            }
        } else if (!parse_flag(&parse, argument)) {
            return false;
        }
    }
    return check_whole(options, error);
}

/* Help. */

struct help {
    char *text;
    size_t capacity, length;
};

static void say(struct help *help, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct help *help, const char *format, ...)
{
    va_list arguments;

    assert(help->length < help->capacity);
    va_start(arguments, format);
    int added = vsnprintf(help->text + help->length, help->capacity - help->length, format, arguments);
    va_end(arguments);
    assert(added >= 0);
    size_t room = help->capacity - help->length - 1;
    help->length += (size_t)added < room ? (size_t)added : room;
}

/* A default worth showing: not "none", not "chosen at start" (which the help text then explains). */
static bool shows_default(const struct option_row *row)
{
    bool is_unset = strcmp(row->default_text, "NULL") == 0 || strcmp(row->default_text, "0") == 0;

    return !is_unset && row->kind != KIND_SWITCH && row->kind != KIND_FILES;
}

static void say_row(struct help *help, int option)
{
    const struct option_row *row = &rows[option];

    say(help, "  %s", row->name);
    for (int i = 0; i < SPELLING_COUNT; i++) {
        if (spellings[i].option == option && strcmp(spellings[i].name, row->name) != 0) {
            say(help, ", %s", spellings[i].name);
        }
    }
    say(help, "%s%s\n      %s", row->unit[0] == '\0' ? "" : " ", row->unit, row->help);
    if (shows_default(row)) {
        say(help, " (default %s)", row->default_text);
    }
    say(help, "\n");
}

size_t options_help(char *text, size_t capacity)
{
    struct help help = {.text = text, .capacity = capacity};

    assert(text != NULL);
    assert(capacity > 0);
    text[0] = '\0';
    say(&help, "ashlar " ASHLAR_VERSION
               ": answers questions about pictures over the OpenAI API, from memory planned at start\n\n"
               "  ashlar serve [flags]             serve; also when the first argument is a flag\n"
               "  ashlar plan [flags]              print the memory plan; needs neither weights nor device\n"
               "  ashlar ask [flags] \"question\"    one answer, without HTTP\n"
               "  ashlar --help | --version\n\n"
               "Flags may be shortened, the last of several wins. Sizes take k, M, G, Ki, Mi, Gi.\n\n");
    for (int i = 0; i < OPTION_ROWS; i++) {
        if (rows[i].status == STATUS_WORKS) {
            say_row(&help, i);
        }
    }
    say(&help, "\nAccepted with a warning, because they have no meaning here or not yet:\n\n");
    for (int i = 0; i < OPTION_ROWS; i++) {
        if (rows[i].status == STATUS_IGNORED) {
            say_row(&help, i);
        }
    }
    return help.length;
}

bool options_is_float32(const struct options *options)
{
    return strcmp(options->dtype, "float32") == 0 || strcmp(options->dtype, "float") == 0;
}

/* Types that the server takes for a neighbour, until it has them. */
static void warn_types(const struct options *options)
{
    bool is_float32 = options_is_float32(options);

    if (!is_float32 && strcmp(options->dtype, "auto") != 0 && strcmp(options->dtype, "bfloat16") != 0) {
        log_warn("flag_replaced flag=%s value=%s used=bfloat16", rows[OPTION_dtype].name, options->dtype);
    }
    bool is_bf16_cache =
        strcmp(options->kv_cache_dtype, "bf16") == 0 || strcmp(options->kv_cache_dtype, "bfloat16") == 0;
    if (strcmp(options->kv_cache_dtype, "auto") != 0 && (is_float32 || !is_bf16_cache)) {
        log_warn("flag_replaced flag=%s value=%s used=%s", rows[OPTION_kv_cache_dtype].name, options->kv_cache_dtype,
                 is_float32 ? "float32" : "bfloat16");
    }
}

void options_warn_ignored(const struct options *options)
{
    warn_types(options);
    for (int i = 0; i < OPTION_ROWS; i++) {
        if (options->is_given[i] && rows[i].status == STATUS_IGNORED) {
            log_warn("flag_ignored flag=%s reason=\"%s\"", rows[i].name, rows[i].help);
        }
    }
}
