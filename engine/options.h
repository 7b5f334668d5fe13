/* options: the command line, parsed as argparse does, from the rows of engine/options_table.h.
 *
 * Always true after options_parse: every number is within its row's bounds, every choice is one of its row's words.
 */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum options_command { COMMAND_SERVE, COMMAND_PLAN, COMMAND_ASK, COMMAND_HELP, COMMAND_VERSION };

struct option_files {
    const char *paths[IMAGES_MAX];
    uint32_t count;
};

#define OPTION_TYPE_SWITCH   bool
#define OPTION_TYPE_COUNT    int64_t
#define OPTION_TYPE_TOKENS   int64_t
#define OPTION_TYPE_BYTES    int64_t
#define OPTION_TYPE_FRACTION double
#define OPTION_TYPE_SECONDS  double
#define OPTION_TYPE_TEXT     const char *
#define OPTION_TYPE_CHOICE   const char *
#define OPTION_TYPE_LIST     const char *
#define OPTION_TYPE_FILES    struct option_files

enum option {
#define OPTION(field, name, kind, default_value, minimum, maximum, unit, status, help) OPTION_##field,
#define OPTION_ALIAS(name, field)
#define OPTION_ENV(name, field)
#include "engine/options_table.h"
    OPTION_ROWS
};

/* One field a row; strings are the caller's argv or environment. `is_given[OPTION_port]`: the user said so. */
struct options {
    enum options_command command;
    const char *question; /* ask: the one argument without a flag; NULL if none */
    bool is_given[OPTION_ROWS];
#define OPTION(field, name, kind, default_value, minimum, maximum, unit, status, help) OPTION_TYPE_##kind field;
#define OPTION_ALIAS(name, field)
#define OPTION_ENV(name, field)
#include "engine/options_table.h"
};

/* Why a command line is refused: one line that names flag, value and range. */
struct options_error {
    char text[LOG_LINE_BYTES_MAX];
};

/* Parses `ashlar [serve|plan|ask] [flags]`; a first argument that is a flag means serve. Flags may be shortened as long
 * as one remains; the last of several wins; --flag=value and --flag value are one. `environment` is main's envp and may
 * be NULL. False with `error` filled when the line is refused: the program ends with START_USAGE. */
bool options_parse(struct options *options, int argument_count, char *const *arguments, char *const *environment,
                   struct options_error *error) __attribute__((warn_unused_result));

/* The help text, made from the table, into `text`; returns its length. `capacity` of OPTIONS_HELP_BYTES is enough. */
enum { OPTIONS_HELP_BYTES = 32 * 1024 };
size_t options_help(char *text, size_t capacity);

/* True if activations, KV cache and features are float32: --dtype float32. Otherwise they are bfloat16. */
bool options_is_float32(const struct options *options);

/* Warns once for each flag that was given and has no meaning here, or whose value is taken for a neighbour. */
void options_warn_ignored(const struct options *options);

/* Row facts, for messages and lists: "--port". */
const char *options_name(enum option option);

/* A byte or token count: digits, then nothing, k, M, G, Ki, Mi or Gi, as written. False if malformed or above 2^63-1.
 */
bool options_size_parse(const char *text, int64_t *value);

/* A decimal number without exponent, "0.85". False if malformed. */
bool options_decimal_parse(const char *text, double *value);

#endif
