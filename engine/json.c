/* json: a pull parser over a buffer, strict as RFC 8259, without a tree and without recursion.
 *
 * Always true between calls: at <= length; everything before `at` is a valid beginning of a document; `depth` levels
 * are open and is_object tells each one's kind; `expected` is what the grammar allows next. A refusal is final. In
 * place: only bytes between the quotes of a string that was given out were written, never beyond where it ended.
 */
#include "engine/json.h"

#include "engine/text/utf8.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum expected {
    A_VALUE,
    A_VALUE_OR_END, /* after [ */
    A_KEY_OR_END,   /* after { */
    A_KEY,          /* after a comma in an object */
    A_SEPARATOR,    /* after a member or an item */
    NOTHING,        /* after the document's value */
};

static enum err fail(struct json_reader *reader, enum err err, const char *reason, size_t at)
{
    assert(reader->err == ERR_OK && at <= reader->length);
    reader->err = err;
    reader->reason = reason;
    reader->error_at = at;
    return err;
}

static enum err bad(struct json_reader *reader, const char *reason)
{
    return fail(reader, ERR_BAD_JSON, reader->at < reader->length ? reason : "unexpected end", reader->at);
}

void json_open_raw(struct json_reader *reader, const char *bytes, size_t length)
{
    assert(bytes != NULL || length == 0);
    *reader = (struct json_reader){.bytes = bytes, .length = length, .expected = A_VALUE, .last_kind = JSON_NONE};
}

void json_open(struct json_reader *reader, char *bytes, size_t length)
{
    json_open_raw(reader, bytes, length);
    reader->writable = bytes;
}

static void skip_space(struct json_reader *reader)
{
    while (reader->at < reader->length) {
        char c = reader->bytes[reader->at];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
            break;
        }
        reader->at++;
    }
}

static bool top_is_object(const struct json_reader *reader)
{
    assert(reader->depth > 0 && reader->depth <= JSON_DEPTH_MAX);
    uint32_t level = reader->depth - 1;
    return (reader->is_object[level / 64] >> (level % 64) & 1) != 0;
}

static void value_is_done(struct json_reader *reader)
{
    reader->expected = reader->depth == 0 ? NOTHING : A_SEPARATOR;
}

/* Strings. */

/* Leading bytes of `s` that stand for themselves: no quote, backslash, control character, or byte over 7F. Eight at a
 * time, because a picture is one string of megabytes; the last few, and the word with the stop in it, byte by byte. */
static size_t plain_bytes(const char *s, size_t length)
{
    const uint64_t ones = 0x0101010101010101U;
    const uint64_t tops = 0x8080808080808080U;
    size_t at = 0;

    for (; length - at >= 16; at += 16) {
        uint64_t pair[2];
        memcpy(pair, s + at, sizeof pair);
        uint64_t stop = pair[0] | pair[1]; /* a byte over 7F */
        for (int i = 0; i < 2; i++) {
            uint64_t word = pair[i];
            uint64_t quote = word ^ ones * '"';
            uint64_t slash = word ^ ones * '\\';
            /* Where no byte has its top bit, a borrow means a stop. */
            stop |= (word - ones * 0x20) | (quote - ones) | (slash - ones);
        }
        if ((stop & tops) != 0) {
            break;
        }
    }
    while (at < length && (unsigned char)s[at] >= 0x20 && (unsigned char)s[at] < 0x80 && s[at] != '"' &&
           s[at] != '\\') {
        at++;
    }
    return at;
}

/* Leading bytes that are whole, valid characters over 7F. */
static size_t wide_bytes(const char *s, size_t length)
{
    size_t at = 0;
    while (at < length && (unsigned char)s[at] >= 0x80) {
        uint32_t code;
        int step = utf8_decode(s + at, length - at, &code);
        if (step <= 0) {
            break;
        }
        at += (size_t)step;
    }
    return at;
}

static bool hex4(const char *s, size_t length, uint32_t *unit)
{
    uint32_t value = 0;
    if (length < 4) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) {
            return false;
        }
        value = value << 4 | digit;
    }
    *unit = value;
    return true;
}

/* Reads the escape at `s` (its backslash). Returns the bytes it takes, and its code point; 0: not an escape. */
static size_t read_escape(const char *s, size_t length, uint32_t *code)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";

    assert(length > 0 && s[0] == '\\');
    if (length < 2 || s[1] == '\0') {
        return 0;
    }
    const char *name = strchr(names, s[1]);
    if (name != NULL) {
        *code = (unsigned char)values[name - names];
        return 2;
    }
    uint32_t high;
    uint32_t low;
    if (s[1] != 'u' || !hex4(s + 2, length - 2, &high)) {
        return 0;
    }
    if (high >= 0xd800 && high < 0xdc00 && length >= 8 && s[6] == '\\' && s[7] == 'u' &&
        hex4(s + 8, length - 8, &low) && low >= 0xdc00 && low < 0xe000) {
        *code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return 12;
    }
    *code = high >= 0xd800 && high < 0xe000 ? 0xfffd : high;
    return 6;
}

/* Reads the string whose quote is at `at`; moves on behind its end. */
static enum err read_string(struct json_reader *reader, struct json_event *event)
{
    assert(reader->bytes[reader->at] == '"');
    size_t begin = reader->at + 1;
    size_t end = begin; /* of what was unescaped so far */
    reader->at = begin;

    for (;;) {
        const char *rest = reader->bytes + reader->at;
        size_t left = reader->length - reader->at;
        size_t run = plain_bytes(rest, left);
        run += wide_bytes(rest + run, left - run);
        if (reader->writable != NULL && end != reader->at) {
            memmove(reader->writable + end, rest, run);
        }
        end += run;
        reader->at += run;
        if (reader->at == reader->length) {
            return bad(reader, "");
        }
        char c = reader->bytes[reader->at];
        if (c == '"') {
            break;
        }
        if (c == '\\') {
            uint32_t code;
            char utf8[UTF8_BYTES_MAX];
            size_t taken = read_escape(rest + run, left - run, &code);
            if (taken == 0) {
                return bad(reader, "invalid escape in a string");
            }
            size_t put = reader->writable == NULL ? taken : (size_t)utf8_encode(code, utf8);
            if (reader->writable != NULL) {
                memcpy(reader->writable + end, utf8, put);
            }
            end += put;
            reader->at += taken;
        } else if ((unsigned char)c < 0x20) {
            return bad(reader, "control character in a string");
        } else if ((unsigned char)c >= 0x80 && run == 0) {
            return bad(reader, "invalid UTF-8 in a string");
        }
    }
    assert(end <= reader->at);
    /* The event's text is writable only as far as the reader's buffer is. */
    event->text = (char *)(uintptr_t)(reader->bytes + begin);
    event->bytes = end - begin;
    reader->at++;
    return ERR_OK;
}

size_t json_unescape_some(const char *text, size_t bytes, size_t *at, char *out, size_t capacity)
{
    size_t end = 0;
    assert(*at <= bytes && capacity >= UTF8_BYTES_MAX);
    while (*at < bytes && end < capacity) {
        const char *rest = text + *at;
        size_t left = bytes - *at;
        const char *slash = memchr(rest, '\\', left);
        size_t run = slash == NULL ? left : (size_t)(slash - rest);
        if (run > capacity - end) {
            for (run = capacity - end; run > 0 && ((unsigned char)rest[run] & 0xc0) == 0x80;) {
                run--; /* no half characters */
            }
            left = run;
        }
        memmove(out + end, rest, run);
        end += run;
        *at += run;
        if (left > run) {
            char utf8[UTF8_BYTES_MAX];
            uint32_t code = 0;
            size_t taken = read_escape(slash, left - run, &code);
            size_t put = (size_t)utf8_encode(code, utf8);
            assert(taken > 0);
            if (put > capacity - end) {
                break;
            }
            memcpy(out + end, utf8, put);
            end += put;
            *at += taken;
        } else if (run == 0) {
            break;
        }
    }
    return end;
}

size_t json_unescape(const char *text, size_t bytes, char *out)
{
    size_t at = 0;
    size_t end = 0;
    while (at < bytes) {
        end += json_unescape_some(text, bytes, &at, out + end, bytes - end + UTF8_BYTES_MAX);
    }
    assert(end <= bytes);
    return end;
}

/* Numbers. */

static size_t digit_bytes(const char *s, size_t length)
{
    size_t at = 0;
    while (at < length && s[at] >= '0' && s[at] <= '9') {
        at++;
    }
    return at;
}

/* Where a literal's parts lie: [-] whole [. fraction] [e exponent]. */
struct number {
    size_t bytes;
    const char *whole;
    size_t whole_digits;
    const char *fraction;
    size_t fraction_digits;
    const char *exponent;
    size_t exponent_digits;
    bool is_negative;
    bool is_exponent_negative;
};

/* Splits the literal at `s`. False if the grammar does not allow it; then `bytes` tells how far it did. */
static bool number_split(const char *s, size_t length, struct number *number)
{
    size_t at = 0;
    *number = (struct number){.whole = s, .fraction = s, .exponent = s};

    number->is_negative = length > 0 && s[0] == '-';
    at += number->is_negative ? 1 : 0;
    number->whole = s + at;
    number->whole_digits = digit_bytes(s + at, length - at);
    if (number->whole_digits > 1 && s[at] == '0') {
        number->bytes = at + 1;
        return false;
    }
    at += number->whole_digits;
    bool is_valid = number->whole_digits > 0;
    if (is_valid && at < length && s[at] == '.') {
        at++;
        number->fraction = s + at;
        number->fraction_digits = digit_bytes(s + at, length - at);
        at += number->fraction_digits;
        is_valid = number->fraction_digits > 0;
    }
    if (is_valid && at < length && (s[at] == 'e' || s[at] == 'E')) {
        at++;
        if (at < length && (s[at] == '+' || s[at] == '-')) {
            number->is_exponent_negative = s[at] == '-';
            at++;
        }
        number->exponent = s + at;
        number->exponent_digits = digit_bytes(s + at, length - at);
        at += number->exponent_digits;
        is_valid = number->exponent_digits > 0;
    }
    number->bytes = at;
    return is_valid;
}

static enum err read_number(struct json_reader *reader, struct json_event *event)
{
    struct number number;
    const char *literal = reader->bytes + reader->at;
    if (!number_split(literal, reader->length - reader->at, &number)) {
        reader->at += number.bytes;
        return bad(reader, "invalid number");
    }
    if (number.bytes > JSON_NUMBER_BYTES_MAX) {
        return fail(reader, ERR_TOO_DEEP, "number too long", reader->at);
    }
    event->kind = JSON_NUMBER;
    event->bytes = number.bytes;
    reader->at += number.bytes;
    return ERR_OK;
}

bool json_number_i64(const char *literal, size_t bytes, int64_t *value)
{
    struct number number;
    if (!number_split(literal, bytes, &number) || number.bytes != bytes) {
        return false;
    }
    int64_t exponent = 0; /* of ten, for the digits read as one whole number */
    for (size_t i = 0; i < number.exponent_digits && exponent < INT32_MAX; i++) {
        exponent = exponent * 10 + (number.exponent[i] - '0');
    }
    exponent = (number.is_exponent_negative ? -exponent : exponent) - (int64_t)number.fraction_digits;

    int64_t sum = 0;
    int64_t zeros = 0; /* seen since the last digit that counts */
    size_t digits = number.whole_digits + number.fraction_digits;
    for (size_t i = 0; i <= digits; i++) {
        char c = i < number.whole_digits ? number.whole[i]
                 : i < digits            ? number.fraction[i - number.whole_digits]
                                         : '0';
        bool is_end = i == digits;
        if (c == '0' && !is_end) {
            zeros++;
            continue;
        }
        if (is_end) {
            zeros += exponent;
            if (sum == 0) {
                break;
            }
            if (zeros < 0) {
                return false; /* a fraction is left */
            }
        }
        for (int64_t k = sum == 0 ? 0 : zeros; k > 0; k--) {
            if (__builtin_mul_overflow(sum, 10, &sum)) {
                return false; /* after 19 rounds at most, sum is not 0 */
            }
        }
        zeros = 0;
        if (!is_end && (__builtin_mul_overflow(sum, 10, &sum) || __builtin_sub_overflow(sum, c - '0', &sum))) {
            return false;
        }
    }
    /* `sum` is minus the magnitude: so INT64_MIN needs no case of its own. */
    if (!number.is_negative && __builtin_sub_overflow(0, sum, &sum)) {
        return false;
    }
    *value = sum;
    return true;
}

bool json_number_f64(const char *literal, size_t bytes, double *value)
{
    char text[JSON_NUMBER_BYTES_MAX + 1];
    assert(bytes > 0 && bytes <= JSON_NUMBER_BYTES_MAX);

    memcpy(text, literal, bytes);
    text[bytes] = '\0';
    double read = strtod(text, NULL);
    if (read > 1.7976931348623157e308 || read < -1.7976931348623157e308) {
        return false;
    }
    *value = read;
    return true;
}

/* The grammar. */

static enum err open_level(struct json_reader *reader, struct json_event *event, bool is_object)
{
    if (reader->depth == JSON_DEPTH_MAX) {
        return fail(reader, ERR_TOO_DEEP, "nested too deeply", reader->at);
    }
    uint64_t bit = (uint64_t)1 << (reader->depth % 64);
    uint64_t *word = &reader->is_object[reader->depth / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    reader->depth++;
    reader->at++;
    reader->expected = is_object ? A_KEY_OR_END : A_VALUE_OR_END;
    event->kind = is_object ? JSON_OBJECT_BEGIN : JSON_ARRAY_BEGIN;
    return ERR_OK;
}

static enum err close_level(struct json_reader *reader, struct json_event *event)
{
    event->kind = top_is_object(reader) ? JSON_OBJECT_END : JSON_ARRAY_END;
    reader->depth--;
    reader->at++;
    value_is_done(reader);
    return ERR_OK;
}

static enum err read_name(struct json_reader *reader, struct json_event *event)
{
    static const struct {
        const char *name;
        enum json_kind kind;
    } names[] = {{"true", JSON_TRUE}, {"false", JSON_FALSE}, {"null", JSON_NULL}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes = strlen(names[i].name);
        if (reader->length - reader->at >= bytes && memcmp(reader->bytes + reader->at, names[i].name, bytes) == 0) {
            event->kind = names[i].kind;
            event->bytes = bytes;
            reader->at += bytes;
            return ERR_OK;
        }
    }
    return bad(reader, "a value is expected");
}

static enum err read_value(struct json_reader *reader, struct json_event *event)
{
    char c = reader->at < reader->length ? reader->bytes[reader->at] : '\0';
    if (c == '{' || c == '[') {
        return open_level(reader, event, c == '{');
    }
    enum err err;
    if (c == '"') {
        event->kind = JSON_STRING;
        err = read_string(reader, event);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        err = read_number(reader, event);
    } else {
        err = read_name(reader, event);
    }
    if (err == ERR_OK) {
        value_is_done(reader);
    }
    return err;
}

static enum err read_key(struct json_reader *reader, struct json_event *event)
{
    if (reader->at == reader->length || reader->bytes[reader->at] != '"') {
        return bad(reader, "a key is expected");
    }
    event->kind = JSON_KEY;
    enum err err = read_string(reader, event);
    if (err != ERR_OK) {
        return err;
    }
    skip_space(reader);
    if (reader->at == reader->length || reader->bytes[reader->at] != ':') {
        return bad(reader, "a colon is expected");
    }
    reader->at++;
    reader->expected = A_VALUE;
    return ERR_OK;
}

/* Reads the token at `at`, white space skipped. */
static enum err read_token(struct json_reader *reader, struct json_event *event)
{
    char c = reader->at < reader->length ? reader->bytes[reader->at] : '\0';

    switch ((enum expected)reader->expected) {
    case A_VALUE:
        return read_value(reader, event);
    case A_VALUE_OR_END:
        return c == ']' ? close_level(reader, event) : read_value(reader, event);
    case A_KEY_OR_END:
        return c == '}' ? close_level(reader, event) : read_key(reader, event);
    case A_KEY:
        return read_key(reader, event);
    case A_SEPARATOR:
        if (c == (top_is_object(reader) ? '}' : ']')) {
            return close_level(reader, event);
        }
        return bad(reader, "a comma or an end is expected");
    case NOTHING:
        break;
    }
    if (reader->at < reader->length) {
        return bad(reader, "bytes after the end");
    }
    event->kind = JSON_END;
    return ERR_OK;
}

enum err json_next(struct json_reader *reader, struct json_event *event)
{
    if (reader->err != ERR_OK) {
        return reader->err;
    }
    skip_space(reader);
    if (reader->expected == A_SEPARATOR && reader->at < reader->length && reader->bytes[reader->at] == ',') {
        reader->at++;
        reader->expected = top_is_object(reader) ? A_KEY : A_VALUE;
        skip_space(reader);
    }
    *event = (struct json_event){.kind = JSON_NONE, .at = reader->at, .bytes = 0};
    event->text = (char *)(uintptr_t)(reader->bytes + reader->at);
    enum err err = read_token(reader, event);
    assert(reader->at <= reader->length && reader->depth <= JSON_DEPTH_MAX);
    if (err == ERR_OK) {
        reader->last_kind = (uint8_t)event->kind;
        reader->last_at = event->at;
    }
    return err;
}

enum err json_skip_raw(struct json_reader *reader, struct json_span *span)
{
    enum json_kind last = (enum json_kind)reader->last_kind;
    bool is_before = last == JSON_KEY || last == JSON_NONE;

    *span = (struct json_span){reader->bytes, 0};
    if (reader->err != ERR_OK) {
        return reader->err;
    }
    assert(is_before || last == JSON_OBJECT_BEGIN || last == JSON_ARRAY_BEGIN);
    uint32_t depth = reader->depth - (is_before ? 0 : 1);
    size_t begin = reader->last_at;
    char *writable = reader->writable;
    enum err err = ERR_OK;

    reader->writable = NULL;
    while (err == ERR_OK && (is_before || reader->depth > depth)) {
        struct json_event event;
        err = json_next(reader, &event);
        if (is_before && err == ERR_OK) {
            begin = event.at;
            is_before = false;
        }
    }
    reader->writable = writable;
    *span = (struct json_span){reader->bytes + begin, err == ERR_OK ? reader->at - begin : 0};
    return err;
}

enum err json_skip(struct json_reader *reader)
{
    struct json_span span;
    enum json_kind last = (enum json_kind)reader->last_kind;
    if (last == JSON_KEY || last == JSON_NONE || last == JSON_OBJECT_BEGIN || last == JSON_ARRAY_BEGIN) {
        return json_skip_raw(reader, &span);
    }
    return reader->err;
}

bool json_event_is(const struct json_event *event, const char *text)
{
    assert(event->kind == JSON_KEY || event->kind == JSON_STRING);
    return strlen(text) == event->bytes && memcmp(event->text, text, event->bytes) == 0;
}
