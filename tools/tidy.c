/* tidy: our own linter. Reads the files it is given, prints `file:line: finding; replacement`, exits 1 if there is any.
 *
 * Always true: a rule looks either at the raw lines, at the text without comments, or at the code (neither comments nor
 * strings), and all three have their lines at the same places. Exceptions are counted ratchets: a place that got better
 * than its line in tools/tidy_exceptions.txt is a finding too, so that file only shrinks.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS_MAX = 120,
    FUNCTION_LINES_MAX = 70,
    FILE_LINES_MAX = 799,
    PATH_PARTS_MAX = 4,
    NAME_BYTES = 128,
};

struct source {
    const char *path;
    char *text; /* the file, NUL behind it */
    char *bare; /* comments blanked; C only */
    char *code; /* comments and string contents blanked; C only */
    size_t bytes;
};

struct exception {
    char rule[NAME_BYTES];
    char place[NAME_BYTES * 2]; /* path, or path:function */
    long allowed;
    long found;
};

static struct source *sources;
static int source_count;
static struct exception *exceptions;
static int exception_count;
static const char *exceptions_path;
static int finding_count;
static long assert_count, function_count; /* of pools/ and engine/ */

__attribute__((format(printf, 3, 4))) static void report(const char *path, long line, const char *format, ...)
{
    va_list arguments;

    printf("%s:%ld: ", path, line);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    finding_count++;
}

/* True if `place` is excepted from `rule` for a measure of `value` (a length), which is then remembered. */
static bool is_excepted(const char *rule, const char *place, long value)
{
    for (int i = 0; i < exception_count; i++) {
        if (strcmp(exceptions[i].rule, rule) == 0 && strcmp(exceptions[i].place, place) == 0) {
            exceptions[i].found = value;
            return value <= exceptions[i].allowed;
        }
    }
    return false;
}

/* ---- files ---- */

static void die(const char *path)
{
    fprintf(stderr, "tidy: cannot read %s\n", path);
    exit(2);
}

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    size_t capacity = 1 << 16, length = 0, got = 0;
    char *text = malloc(capacity);

    if (file == NULL || text == NULL) {
        die(path);
    }
    while ((got = fread(text + length, 1, capacity - length - 1, file)) > 0) {
        length += got;
        if (capacity - length < 2) {
            capacity *= 2;
            text = realloc(text, capacity);
            if (text == NULL) {
                die(path);
            }
        }
    }
    fclose(file);
    text[length] = '\0';
    *bytes = length;
    return text;
}

static bool has_ending(const char *path, const char *ending)
{
    size_t a = strlen(path), b = strlen(ending);
    return a >= b && strcmp(path + a - b, ending) == 0;
}

static bool is_under(const char *path, const char *folder)
{
    return strncmp(path, folder, strlen(folder)) == 0;
}

static bool is_c(const char *path)
{
    return has_ending(path, ".c") || has_ending(path, ".h");
}

static bool is_product(const char *path)
{
    return is_under(path, "pools/") || is_under(path, "kernels/") || is_under(path, "engine/");
}

/* "engine/text/chat.c" -> "chat" */
static void stem_of(const char *path, char stem[NAME_BYTES])
{
    const char *base = strrchr(path, '/');
    base = base == NULL ? path : base + 1;
    snprintf(stem, NAME_BYTES, "%s", base);
    char *dot = strrchr(stem, '.');
    if (dot != NULL) {
        *dot = '\0';
    }
}

static long line_of(const char *view, const char *place)
{
    long line = 1;

    for (const char *at = view; at < place; at++) {
        line += *at == '\n';
    }
    return line;
}

/* Fills bare and code: what is left out becomes blanks, newlines stay. */
static void strip(struct source *source)
{
    enum { CODE, LINE_COMMENT, BLOCK_COMMENT, STRING, CHARACTER } state = CODE;

    source->bare = malloc(source->bytes + 1);
    source->code = malloc(source->bytes + 1);
    if (source->bare == NULL || source->code == NULL) {
        die(source->path);
    }
    memcpy(source->bare, source->text, source->bytes + 1);
    memcpy(source->code, source->text, source->bytes + 1);
    for (size_t i = 0; i < source->bytes; i++) {
        char here = source->text[i], next = source->text[i + 1];
        bool is_comment = state == LINE_COMMENT || state == BLOCK_COMMENT, is_pair = false;

        if (state == CODE && here == '/' && (next == '/' || next == '*')) {
            state = next == '/' ? LINE_COMMENT : BLOCK_COMMENT;
            is_comment = is_pair = true;
        } else if (state == CODE && (here == '"' || here == '\'')) {
            state = here == '"' ? STRING : CHARACTER;
        } else if (state == LINE_COMMENT && here == '\n') {
            state = CODE;
        } else if (state == BLOCK_COMMENT && here == '*' && next == '/') {
            state = CODE;
            is_pair = true;
        } else if (state == STRING || state == CHARACTER) {
            is_pair = here == '\\';
            if (here == (state == STRING ? '"' : '\'')) {
                state = CODE;
                continue; /* the closing quote stays */
            }
            source->code[i] = here == '\n' ? '\n' : ' ';
            if (is_pair && next != '\n') {
                source->code[i + 1] = ' ';
            }
        }
        for (size_t k = i; is_comment && k <= i + is_pair; k++) {
            source->bare[k] = source->code[k] = source->text[k] == '\n' ? '\n' : ' ';
        }
        i += is_pair;
    }
}

/* ---- rules on raw lines ---- */

static long columns(const char *line, size_t bytes)
{
    long count = 0;
    for (size_t i = 0; i < bytes; i++) {
        count += ((unsigned char)line[i] & 0xC0) != 0x80;
    }
    return count;
}

static void check_line(const struct source *source, long line, const char *text, size_t bytes)
{
    static const char *const marks[] = {"TO"
                                        "DO",
                                        "FIX"
                                        "ME",
                                        "XX"
                                        "X:",
                                        "HA"
                                        "CK:"};
    bool is_makefile = strcmp(source->path, "Makefile") == 0;
    bool is_row = has_ending(source->path, "_table.h"); /* one row a line, whatever its length */

    if (columns(text, bytes) > COLUMNS_MAX && !is_row) {
        report(source->path, line, "%ld columns; break the line at %d", columns(text, bytes), COLUMNS_MAX);
    }
    if (bytes > 0 && (text[bytes - 1] == ' ' || text[bytes - 1] == '\t')) {
        report(source->path, line, "blanks at the end of the line; remove them");
    }
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\t' && !is_makefile) {
            report(source->path, line, "tab; write four spaces");
            break;
        }
        if (text[i] == '\r') {
            report(source->path, line, "carriage return; end lines with a newline only");
        }
    }
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        for (size_t at = 0; at + strlen(marks[i]) <= bytes; at++) {
            if (memcmp(text + at, marks[i], strlen(marks[i])) == 0) {
                report(source->path, line, "%s; do it now or file an issue", marks[i]);
            }
        }
    }
}

static void check_lines(const struct source *source)
{
    long line = 0;
    const char *at = source->text, *end = source->text + source->bytes;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((newline == NULL ? end : newline) - at);
        check_line(source, ++line, at, bytes);
        if (newline == NULL) {
            report(source->path, line, "no newline at the end of the file; add one");
            break;
        }
        at = newline + 1;
    }
    if (line > FILE_LINES_MAX && !is_excepted("file", source->path, line)) {
        report(source->path, line, "%ld lines; split the file by noun below %d", line, FILE_LINES_MAX + 1);
    }
}

static void check_path(const struct source *source)
{
    static const char *const banned[] = {"util", "utils", "common", "misc", "helper", "helpers", "stuff", "general"};
    char stem[NAME_BYTES], word[NAME_BYTES];
    int parts = 1;

    for (const char *at = source->path; *at != '\0'; at++) {
        parts += *at == '/';
    }
    if (parts > PATH_PARTS_MAX) {
        report(source->path, 1, "%d path parts; at most %d", parts, PATH_PARTS_MAX);
    }
    stem_of(source->path, stem);
    for (char *at = stem; *at != '\0'; at += at[0] == '_') {
        size_t length = strcspn(at, "_");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        for (size_t i = 0; i < sizeof banned / sizeof banned[0]; i++) {
            if (strcmp(word, banned[i]) == 0) {
                report(source->path, 1, "'%s' in a file's name; name the file by the noun it owns", word);
            }
        }
        at += length;
    }
    if (is_c(source->path) && strncmp(source->text, "/*", 2) != 0) {
        report(source->path, 1, "no opening comment; say in the first line what the file is responsible for");
    }
}

/* ---- rules on code ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Next place of the whole word at or behind `from`; NULL if none. */
static const char *find_word(const char *view, const char *from, const char *word)
{
    size_t bytes = strlen(word);

    for (const char *at = strstr(from, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == view || !is_word(at[-1])) && !is_word(at[bytes])) {
            return at;
        }
    }
    return NULL;
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\n') {
        at++;
    }
    return at;
}

struct banned_call {
    const char *name;
    const char *instead;
    const char *allowed_in; /* words in the path, separated by blanks, or "" */
};

static const struct banned_call banned_calls[] = {
#define BANNED(name, instead, allowed_in) {name, instead, allowed_in},
#include "tools/tidy_table.h"
};

static bool is_allowed(const char *path, const char *allowed_in)
{
    char word[NAME_BYTES];

    while (*allowed_in != '\0') {
        size_t length = strcspn(allowed_in, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, allowed_in);
        if (strstr(path, word) != NULL) {
            return true;
        }
        allowed_in += length + (allowed_in[length] == ' ');
    }
    return false;
}

static void check_calls(const struct source *source)
{
    if (!is_product(source->path) || strcmp(source->path, "pools/no_heap.h") == 0) {
        return; /* no_heap.h names them in order to poison them */
    }
    for (size_t i = 0; i < sizeof banned_calls / sizeof banned_calls[0]; i++) {
        const struct banned_call *banned = &banned_calls[i];
        const char *at = source->code;
        while ((at = find_word(source->code, at, banned->name)) != NULL) {
            bool is_member = at > source->code && (at[-1] == '.' || at[-1] == '>');
            if (*skip_blanks(at + strlen(banned->name)) == '(' && !is_member &&
                !is_allowed(source->path, banned->allowed_in)) {
                report(source->path, line_of(source->code, at), "%s(); %s", banned->name, banned->instead);
            }
            at++;
        }
    }
}

/* The place of the bracket that closes the one at `open`; NULL if none does. */
static const char *closing(const char *open)
{
    char opens = *open, closes = opens == '(' ? ')' : '}';
    int depth = 0;

    for (const char *at = open; *at != '\0'; at++) {
        depth += (*at == opens) - (*at == closes);
        if (depth == 0) {
            return at;
        }
    }
    return NULL;
}

/* A call in an assert whose name says that it changes something; one that ends in a measure only looks. */
static bool names_an_effect(const char *name, size_t bytes)
{
    static const char *const verbs[] = {"get",   "put",  "take", "give",  "push", "pop",   "open", "shut", "close",
                                        "start", "stop", "set",  "reset", "init", "write", "send", "recv", "append",
                                        "next",  "lock", "wait", "clear", "add",  "drop",  "run",  "map",  "advance"};
    static const char *const measures[] = {"_count", "_bytes", "_state", "_used", "_held", "_length"};
    size_t from = 0;

    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
        size_t length = strlen(measures[i]);
        if (bytes > length && memcmp(name + bytes - length, measures[i], length) == 0) {
            return false;
        }
    }
    while (from < bytes) {
        size_t length = 0;
        while (from + length < bytes && name[from + length] != '_') {
            length++;
        }
        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
            if (strlen(verbs[i]) == length && memcmp(name + from, verbs[i], length) == 0) {
                return true;
            }
        }
        from += length + 1;
    }
    return false;
}

static void check_assert(const struct source *source, const char *open, const char *close)
{
    long line = line_of(source->code, open);

    for (const char *at = open + 1; at < close; at++) {
        bool is_compare = strchr("=<>!", at[-1]) != NULL || at[1] == '=';
        if ((*at == '=' && !is_compare) || (at[0] == '+' && at[1] == '+') || (at[0] == '-' && at[1] == '-')) {
            report(source->path, line, "assert changes something; do it in a statement before");
            return;
        }
        if (*at == '(' && is_word(at[-1])) {
            const char *name = at;
            while (is_word(name[-1])) {
                name--;
            }
            if (names_an_effect(name, (size_t)(at - name))) {
                report(source->path, line,
                       "assert calls %.*s, which sounds like an effect; do it in a statement before", (int)(at - name),
                       name);
            }
        }
    }
}

static void check_asserts(const struct source *source)
{
    bool counts = is_under(source->path, "pools/") || is_under(source->path, "engine/");
    const char *at = source->code;

    while ((at = find_word(source->code, at, "assert")) != NULL) {
        const char *open = skip_blanks(at + strlen("assert"));
        const char *close = *open == '(' ? closing(open) : NULL;
        if (close != NULL) {
            check_assert(source, open, close);
            assert_count += counts;
        }
        at++;
    }
}

/* The name of the function whose body opens at `brace`, or NULL if that is no function. */
static const char *function_name(const char *view, const char *brace, size_t *bytes)
{
    const char *at = brace - 1;

    for (;;) {
        while (at > view && isspace((unsigned char)*at)) {
            at--;
        }
        if (at <= view || *at != ')') {
            return NULL;
        }
        int depth = 0;
        do {
            depth += (*at == ')') - (*at == '(');
            at--;
        } while (at > view && depth > 0);
        while (at > view && isspace((unsigned char)*at)) {
            at--;
        }
        const char *end = at + 1;
        while (at > view && is_word(*at)) {
            at--;
        }
        const char *name = is_word(*at) ? at : at + 1;
        *bytes = (size_t)(end - name);
        if (*bytes != strlen("__attribute__") || memcmp(name, "__attribute__", *bytes) != 0) {
            return *bytes > 0 ? name : NULL;
        }
    }
}

static void check_function(const struct source *source, const char *name, size_t name_bytes, const char *end)
{
    char place[NAME_BYTES * 2];
    long first = line_of(source->code, name), lines = line_of(source->code, end) - first + 1;

    snprintf(place, sizeof place, "%s:%.*s", source->path, (int)name_bytes, name);
    if (lines > FUNCTION_LINES_MAX && !is_excepted("function", place, lines)) {
        report(source->path, first, "%.*s has %ld lines; split it below %d", (int)name_bytes, name, lines,
               FUNCTION_LINES_MAX + 1);
    }
    function_count += is_under(source->path, "pools/") || is_under(source->path, "engine/");
}

static void check_functions(const struct source *source)
{
    bool is_directive = false, is_line_start = true;

    for (const char *at = source->code; *at != '\0'; at++) {
        if (*at == '\n') {
            is_directive = is_directive && at > source->code && at[-1] == '\\';
            is_line_start = true;
            continue;
        }
        is_directive = is_directive || (is_line_start && *at == '#');
        is_line_start = is_line_start && isspace((unsigned char)*at);
        if (*at == '{' && !is_directive) {
            size_t bytes = 0;
            const char *name = function_name(source->code, at, &bytes), *end = closing(at);
            if (end == NULL) {
                report(source->path, line_of(source->code, at), "brace is never closed; close it");
                return;
            }
            if (name != NULL) {
                check_function(source, name, bytes, end);
            }
            at = end;
        }
    }
}

static void check_model_names(const struct source *source)
{
    if (!is_product(source->path) || is_under(source->path, "engine/model/arch/") ||
        is_under(source->path, "engine/text/chat") || is_under(source->path, "engine/text/vocab_load")) {
        return;
    }
    for (const char *at = source->bare; *at != '\0'; at++) {
        if (strncmp(at, "qwen", 4) == 0 || strncmp(at, "Qwen", 4) == 0 || strncmp(at, "QWEN", 4) == 0) {
            report(source->path, line_of(source->bare, at),
                   "a model's name; only engine/model/arch, engine/text/chat* and vocab_load know models");
        }
    }
}

/* ---- rules on includes ---- */

struct layer {
    const char *folder;
    const char *target; /* what its files include, from the repository root */
    bool is_allowed;
};

/* The first row that matches a file and its include decides. */
static const struct layer layers[] = {
#define LAYER(folder, target, is_allowed) {folder, target, is_allowed},
#include "tools/tidy_table.h"
};

static void check_include(const struct source *source, long line, const char *target)
{
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        if (is_under(source->path, layers[i].folder) && is_under(target, layers[i].target)) {
            if (!layers[i].is_allowed) {
                report(source->path, line,
                       "%s may not include %s; includes point one way: config.h, pools or kernels, engine",
                       layers[i].folder, target);
            }
            break;
        }
    }
    if (strchr(target, '/') == NULL && strcmp(target, "config.h") != 0 && strcmp(target, "model_list.h") != 0) {
        report(source->path, line, "include of \"%s\"; write the path from the repository root", target);
    }
}

/* The next `#include "target"` at or behind *at, which moves behind it; false at the end. */
static bool next_include(const struct source *source, const char **at, long *line, char target[NAME_BYTES * 2])
{
    const char *found = *at;

    while ((found = strstr(found, "include")) != NULL) {
        const char *hash = found - 1, *quote = skip_blanks(found + strlen("include"));
        while (hash > source->bare && *hash == ' ') {
            hash--;
        }
        if (hash >= source->bare && *hash == '#' && *quote == '"') {
            size_t length = strcspn(quote + 1, "\"\n");
            snprintf(target, NAME_BYTES * 2, "%.*s", (int)length, quote + 1);
            *line = line_of(source->bare, found);
            *at = quote + 1 + length;
            return true;
        }
        found++;
    }
    return false;
}

static void check_includes(const struct source *source)
{
    const char *at = source->bare;
    char target[NAME_BYTES * 2];
    long line = 0;

    while (next_include(source, &at, &line, target)) {
        check_include(source, line, target);
    }
}

/* ---- rules on the tree ---- */

static bool is_included_somewhere(const char *path)
{
    char target[NAME_BYTES * 2];
    long line = 0;

    for (int i = 0; i < source_count; i++) {
        const char *at = sources[i].bare;
        while (at != NULL && next_include(&sources[i], &at, &line, target)) {
            if (strcmp(target, path) == 0) {
                return true;
            }
        }
    }
    return strcmp(path, "pools/no_heap.h") == 0; /* the Makefile includes it everywhere */
}

/* Tests of engine/text/x.c lie in tests/text/test_x.c, of engine/x.c in tests/engine/, of pools/x.c in tests/pools/. */
static void test_path_of(const char *path, char test[NAME_BYTES * 2])
{
    char stem[NAME_BYTES];
    const char *from =
        is_under(path, "engine/") && strchr(path + strlen("engine/"), '/') != NULL ? path + strlen("engine/") : path;

    stem_of(path, stem);
    char *variant = strstr(stem, "_avx"); /* x_avx2.c is a path of x.c: test_x runs both */
    if (variant != NULL) {
        *variant = '\0';
    }
    snprintf(test, NAME_BYTES * 2, "tests/%.*s/test_%.90s.c", (int)strcspn(from, "/"), from, stem);
}

static bool is_given(const char *path)
{
    for (int i = 0; i < source_count; i++) {
        if (strcmp(sources[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

/* Kernels below ref/, cpu/ and cuda/ are tested by tests/kernels/kerncheck, the tables in arch/ by the model's tests.
 */
static bool needs_test(const char *path)
{
    return is_product(path) && has_ending(path, ".c") && !is_under(path, "engine/model/arch/") &&
           !is_under(path, "kernels/ref/") && !is_under(path, "kernels/cpu/") && !is_under(path, "kernels/cuda/");
}

static void check_place_in_tree(const struct source *source)
{
    char test[NAME_BYTES * 2];

    if (has_ending(source->path, ".h") && is_product(source->path) && !is_included_somewhere(source->path)) {
        report(source->path, 1, "no file includes it; remove it");
    }
    if (needs_test(source->path)) {
        test_path_of(source->path, test);
        if (!is_given(test) && !is_excepted("untested", source->path, 1)) {
            report(source->path, 1, "no test; write %s", test);
        }
    }
}

static bool may_share_stem(const char *a, const char *b)
{
    size_t folder = (size_t)(strrchr(a, '/') == NULL ? 0 : strrchr(a, '/') - a + 1);

    if (strrchr(a, '.') != NULL && strrchr(b, '.') != NULL && strcmp(strrchr(a, '.'), strrchr(b, '.')) != 0 &&
        strncmp(a, b, folder) == 0 && strchr(b + folder, '/') == NULL) {
        return true; /* x.c and x.h in one folder */
    }
    return is_under(a, "kernels/") && is_under(b, "kernels/"); /* an op's implementations */
}

static void check_stems(void)
{
    char a[NAME_BYTES], b[NAME_BYTES];

    for (int i = 0; i < source_count; i++) {
        stem_of(sources[i].path, a);
        for (int k = i + 1; k < source_count; k++) {
            stem_of(sources[k].path, b);
            if (is_c(sources[i].path) && is_c(sources[k].path) && strcmp(a, b) == 0 &&
                !may_share_stem(sources[i].path, sources[k].path)) {
                report(sources[k].path, 1, "its name is taken by %s; a file's stem is unique in the tree",
                       sources[i].path);
            }
        }
    }
}

/* ---- exceptions ---- */

/* Lines `rule place allowed reason...`; `#` opens a comment. */
static void read_exceptions(const char *path)
{
    size_t bytes = 0;
    char *text = read_file(path, &bytes), *save = NULL;

    exceptions_path = path;
    exceptions = calloc(bytes / 4 + 1, sizeof *exceptions);
    if (exceptions == NULL) {
        die(path);
    }
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        struct exception *exception = &exceptions[exception_count];
        if (line[0] == '#') {
            continue;
        }
        if (sscanf(line, "%127s %255s %ld", exception->rule, exception->place, &exception->allowed) != 3) {
            report(path, 1, "'%s'; write: rule place allowed reason", line);
            continue;
        }
        exception_count++;
    }
    free(text);
}

static void check_exceptions(void)
{
    for (int i = 0; i < exception_count; i++) {
        const struct exception *exception = &exceptions[i];
        if (exception->found == 0) {
            report(exceptions_path, 1, "%s %s is not needed any more; remove it", exception->rule, exception->place);
        } else if (exception->found < exception->allowed) {
            report(exceptions_path, 1, "%s %s is at %ld now; lower it", exception->rule, exception->place,
                   exception->found);
        }
    }
}

static void check_source(const struct source *source)
{
    check_lines(source);
    check_path(source);
    if (is_c(source->path)) {
        check_calls(source);
        check_asserts(source);
        check_functions(source);
        check_model_names(source);
        check_includes(source);
        check_place_in_tree(source);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: tidy EXCEPTIONS FILE...\n");
        return 2;
    }
    read_exceptions(argv[1]);
    sources = calloc((size_t)argc, sizeof *sources);
    if (sources == NULL) {
        die("the command line");
    }
    for (int i = 2; i < argc; i++) {
        struct source *source = &sources[source_count++];
        source->path = argv[i];
        source->text = read_file(argv[i], &source->bytes);
        if (is_c(argv[i])) {
            strip(source);
        }
    }
    for (int i = 0; i < source_count; i++) {
        check_source(&sources[i]);
    }
    check_stems();
    check_exceptions();
    printf("tidy: %d files, %d findings; asserts a function in pools/ and engine/: %.1f\n", source_count, finding_count,
           function_count == 0 ? 0.0 : (double)assert_count / (double)function_count);
    return finding_count == 0 ? 0 : 1;
}
