/* python_json: writes JSON the way the reference's templates do, which are rendered by Python.
 *
 * Nothing is kept between calls. Strings pass through a small buffer, unescaped and written anew; a float is printed
 * with the fewest digits that read back equal, an integer keeps all of its own.
 */
#include "engine/text/python_json.h"

#include "engine/json_out.h"
#include "engine/text/unicode.h"
#include "engine/text/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PIECE_BYTES = 256 };

static void put_text(struct prompt *prompt, const char *text)
{
    prompt_user(prompt, text, strlen(text));
}

static void put_json_string(struct prompt *prompt, const struct json_event *string)
{
    put_text(prompt, "\"");
    for (size_t at = 0; at < string->bytes;) {
        char piece[PIECE_BYTES];
        size_t bytes = json_unescape_some(string->text, string->bytes, &at, piece, sizeof piece);
        for (size_t done = 0; done < bytes;) {
            char escaped[PIECE_BYTES];
            size_t length = json_escape(piece, bytes, &done, escaped, sizeof escaped);
            prompt_user(prompt, escaped, length);
        }
    }
    put_text(prompt, "\"");
}

/* One character of a printed string, between quotes of the kind `quote`. */
static void put_str_character(struct prompt *prompt, const char *bytes, size_t length, uint32_t code, char quote)
{
    static const char names[] = "\t\n\r";
    char text[16];
    const char *name = code > 0 && code < 0x20 ? strchr(names, (char)code) : NULL;

    if (name != NULL) {
        (void)snprintf(text, sizeof text, "\\%c", "tnr"[name - names]);
    } else if (code == (unsigned char)quote || code == '\\') {
        (void)snprintf(text, sizeof text, "\\%c", (char)code);
    } else if (unicode_is_printable(code)) {
        prompt_user(prompt, bytes, length);
        return;
    } else {
        (void)snprintf(text, sizeof text, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    }
    put_text(prompt, text);
}

/* True if the unescaped string has the character `c`. */
static bool has_character(const struct json_event *string, char c)
{
    for (size_t at = 0; at < string->bytes;) {
        char piece[PIECE_BYTES];
        size_t bytes = json_unescape_some(string->text, string->bytes, &at, piece, sizeof piece);
        if (memchr(piece, c, bytes) != NULL) {
            return true;
        }
    }
    return false;
}

static void put_str_string(struct prompt *prompt, const struct json_event *string)
{
    char quote = has_character(string, '\'') && !has_character(string, '"') ? '"' : '\'';
    prompt_user(prompt, &quote, 1);
    for (size_t at = 0; at < string->bytes;) {
        char piece[PIECE_BYTES];
        size_t bytes = json_unescape_some(string->text, string->bytes, &at, piece, sizeof piece);
        for (size_t done = 0; done < bytes;) {
            uint32_t code = 0;
            int step = utf8_decode(piece + done, bytes - done, &code);
            assert(step > 0);
            put_str_character(prompt, piece + done, (size_t)step, code, quote);
            done += (size_t)step;
        }
    }
    prompt_user(prompt, &quote, 1);
}

static void put_number(struct prompt *prompt, const struct json_event *number, enum python_form form)
{
    bool is_float = false;
    double value;
    char text[JSON_F64_BYTES_MAX];
    for (size_t i = 0; i < number->bytes; i++) {
        is_float = is_float || number->text[i] == '.' || number->text[i] == 'e' || number->text[i] == 'E';
    }
    if (!is_float) {
        bool is_minus_zero = number->bytes == 2 && memcmp(number->text, "-0", 2) == 0;
        prompt_user(prompt, number->text + is_minus_zero, number->bytes - is_minus_zero);
    } else if (json_number_f64(number->text, number->bytes, &value)) {
        prompt_user(prompt, text, (size_t)json_f64_print(value, text));
    } else {
        put_text(prompt, number->text[0] == '-' ? "-" : "");
        put_text(prompt, form == PYTHON_TOJSON ? "Infinity" : "inf");
    }
}

static void put_event(struct prompt *prompt, const struct json_event *event, enum python_form form)
{
    bool is_json = form == PYTHON_TOJSON;
    switch (event->kind) {
    case JSON_OBJECT_BEGIN:
    case JSON_OBJECT_END:
    case JSON_ARRAY_BEGIN:
    case JSON_ARRAY_END:
        prompt_user(prompt, event->text, 1);
        break;
    case JSON_KEY:
    case JSON_STRING:
        if (is_json) {
            put_json_string(prompt, event);
        } else {
            put_str_string(prompt, event);
        }
        put_text(prompt, event->kind == JSON_KEY ? ": " : "");
        break;
    case JSON_NUMBER:
        put_number(prompt, event, form);
        break;
    case JSON_TRUE:
        put_text(prompt, is_json ? "true" : "True");
        break;
    case JSON_FALSE:
        put_text(prompt, is_json ? "false" : "False");
        break;
    case JSON_NULL:
        put_text(prompt, is_json ? "null" : "None");
        break;
    case JSON_NONE:
    case JSON_END:
        break;
    }
}

enum err python_json_put(struct prompt *prompt, struct json_span json, enum python_form form)
{
    struct json_reader reader;
    struct json_event event = {.kind = JSON_NONE};
    json_open_raw(&reader, json.bytes, json.length);

    while (event.kind != JSON_END) {
        enum json_kind last = event.kind;
        enum err err = json_next(&reader, &event);
        if (err != ERR_OK) {
            return err;
        }
        bool is_first = last == JSON_NONE || last == JSON_KEY || last == JSON_OBJECT_BEGIN || last == JSON_ARRAY_BEGIN;
        bool is_end = event.kind == JSON_OBJECT_END || event.kind == JSON_ARRAY_END || event.kind == JSON_END;
        put_text(prompt, is_first || is_end ? "" : ", ");
        put_event(prompt, &event, form);
    }
    return ERR_OK;
}
