/* json_out: a bounded JSON writer into the caller's buffer.
 *
 * Always true between calls: length <= capacity, and without overflow bytes[0 .. length) is a beginning of a JSON
 * document. After an overflow nothing more is written.
 */
#include "engine/json_out.h"

#include "engine/text/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_out_open(struct json_out *out, char *bytes, size_t capacity)
{
    assert(bytes != NULL || capacity == 0);
    *out = (struct json_out){.bytes = bytes, .capacity = capacity};
}

static void put(struct json_out *out, const char *bytes, size_t length)
{
    assert(out->length <= out->capacity);
    if (out->has_overflowed || length > out->capacity - out->length) {
        out->has_overflowed = true;
        return;
    }
    memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
}

/* The comma before an item, where one is due. */
static void begin_item(struct json_out *out)
{
    uint64_t bit = (uint64_t)1 << (out->depth % 64);
    uint64_t *word = &out->has_item[out->depth / 64];
    if (!out->is_after_key && (*word & bit) != 0) {
        put(out, ",", 1);
    }
    *word |= bit;
    out->is_after_key = false;
}

static void begin_level(struct json_out *out, const char *bracket)
{
    begin_item(out);
    put(out, bracket, 1);
    assert(out->depth < JSON_DEPTH_MAX);
    out->depth++;
    out->has_item[out->depth / 64] &= ~((uint64_t)1 << (out->depth % 64));
}

static void end_level(struct json_out *out, const char *bracket)
{
    assert(out->depth > 0 && !out->is_after_key);
    out->depth--;
    put(out, bracket, 1);
}

void json_out_object_begin(struct json_out *out)
{
    begin_level(out, "{");
}

void json_out_object_end(struct json_out *out)
{
    end_level(out, "}");
}

void json_out_array_begin(struct json_out *out)
{
    begin_level(out, "[");
}

void json_out_array_end(struct json_out *out)
{
    end_level(out, "]");
}

void json_out_key(struct json_out *out, const char *key)
{
    assert(out->depth > 0 && !out->is_after_key);
    begin_item(out);
    put(out, "\"", 1);
    put(out, key, strlen(key));
    put(out, "\":", 2);
    out->is_after_key = true;
}

/* Finds the next piece of text[at ..) that stays together: a run of plain ASCII (*escape is empty), or one character,
 * as its escape. Returns the bytes of text it takes. */
static size_t next_piece(const char *text, size_t bytes, size_t at, char escape[JSON_ESCAPE_BYTES_MAX],
                         size_t *escape_bytes)
{
    static const char names[] = "btn\0fr"; /* of 08 .. 0D */
    static const char hex[] = "0123456789abcdef";
    size_t run = 0;

    assert(at < bytes);
    *escape_bytes = 0;
    while (at + run < bytes) {
        unsigned char c = (unsigned char)text[at + run];
        if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') {
            break;
        }
        run++;
    }
    if (run > 0) {
        return run;
    }
    unsigned char c = (unsigned char)text[at];
    if (c >= 0x80) {
        uint32_t code;
        int step = utf8_decode(text + at, bytes - at, &code);
        if (step > 0) {
            memcpy(escape, text + at, (size_t)step);
            *escape_bytes = (size_t)step;
            return (size_t)step;
        }
        memcpy(escape, UTF8_REPLACEMENT, UTF8_REPLACEMENT_BYTES);
        *escape_bytes = UTF8_REPLACEMENT_BYTES;
        return step == 0 ? bytes - at : (size_t)-step;
    }
    escape[0] = '\\';
    *escape_bytes = 2;
    if (c >= 0x20) {
        escape[1] = (char)c;
    } else if (c >= 0x08 && c <= 0x0d && names[c - 0x08] != '\0') {
        escape[1] = names[c - 0x08];
    } else {
        memcpy(escape + 1, "u00", 3);
        escape[4] = hex[c >> 4];
        escape[5] = hex[c & 15];
        *escape_bytes = 6;
    }
    return 1;
}

size_t json_escaped_bytes(const char *text, size_t bytes)
{
    size_t total = 0;
    for (size_t at = 0; at < bytes;) {
        char escape[JSON_ESCAPE_BYTES_MAX];
        size_t escape_bytes;
        size_t taken = next_piece(text, bytes, at, escape, &escape_bytes);
        total += escape_bytes == 0 ? taken : escape_bytes;
        at += taken;
    }
    return total;
}

size_t json_escape(const char *text, size_t bytes, size_t *at, char *out, size_t capacity)
{
    size_t length = 0;
    assert(*at <= bytes);
    while (*at < bytes) {
        char escape[JSON_ESCAPE_BYTES_MAX];
        size_t escape_bytes;
        size_t taken = next_piece(text, bytes, *at, escape, &escape_bytes);
        if (escape_bytes == 0) {
            taken = taken < capacity - length ? taken : capacity - length;
            memcpy(out + length, text + *at, taken);
            length += taken;
        } else if (escape_bytes <= capacity - length) {
            memcpy(out + length, escape, escape_bytes);
            length += escape_bytes;
        } else {
            taken = 0;
        }
        if (taken == 0) {
            break; /* full */
        }
        *at += taken;
    }
    assert(length <= capacity);
    return length;
}

void json_out_string(struct json_out *out, const char *text, size_t bytes)
{
    begin_item(out);
    put(out, "\"", 1);
    size_t at = 0;
    if (!out->has_overflowed) {
        out->length += json_escape(text, bytes, &at, out->bytes + out->length, out->capacity - out->length);
        out->has_overflowed = at < bytes;
    }
    put(out, "\"", 1);
}

void json_out_text(struct json_out *out, const char *text)
{
    json_out_string(out, text, strlen(text));
}

void json_out_raw(struct json_out *out, const char *json, size_t bytes)
{
    begin_item(out);
    put(out, json, bytes);
}

void json_out_u64(struct json_out *out, uint64_t value)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    json_out_raw(out, text, (size_t)length);
}

void json_out_i64(struct json_out *out, int64_t value)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%lld", (long long)value);
    json_out_raw(out, text, (size_t)length);
}

/* The fewest significant digits that read back equal, as 0.DDD x 10^point. */
static int shortest_digits(double magnitude, char digits[18], int *point)
{
    char text[JSON_F64_BYTES_MAX];
    int precision = 0;
    for (; precision < 17; precision++) {
        (void)snprintf(text, sizeof text, "%.*e", precision, magnitude);
        if (strtod(text, NULL) == magnitude) { /* NOLINT: equality is the question */
            break;
        }
    }
    const char *exponent = strchr(text, 'e');
    assert(exponent != NULL);
    int count = 0;
    for (const char *c = text; c < exponent; c++) {
        if (*c != '.') {
            assert(count < 18);
            digits[count++] = *c;
        }
    }
    while (count > 1 && digits[count - 1] == '0') {
        count--;
    }
    *point = (int)strtol(exponent + 1, NULL, 10) + 1;
    return count;
}

int json_f64_print(double value, char *out)
{
    char digits[18] = {0};
    int point = 0;
    int length = 0;

    assert(isfinite(value));
    if (signbit(value)) {
        out[length++] = '-';
    }
    int count = shortest_digits(fabs(value), digits, &point);
    if (point > 16 || point < -3) { /* where Python turns to exponents */
        out[length++] = digits[0];
        if (count > 1) {
            out[length++] = '.';
            memcpy(out + length, digits + 1, (size_t)count - 1);
            length += count - 1;
        }
        int exponent = point - 1;
        length += snprintf(out + length, (size_t)(JSON_F64_BYTES_MAX - length), "e%c%02d", exponent < 0 ? '-' : '+',
                           abs(exponent));
        return length;
    }
    for (int i = point < 1 ? point - 1 : 0; i < count || i <= point; i++) {
        if (i == point) {
            out[length++] = '.';
        }
        out[length++] = i >= 0 && i < count ? digits[i] : '0';
    }
    assert(length < JSON_F64_BYTES_MAX);
    return length;
}

void json_out_f64(struct json_out *out, double value)
{
    char text[JSON_F64_BYTES_MAX];
    if (!isfinite(value)) {
        json_out_null(out);
        return;
    }
    json_out_raw(out, text, (size_t)json_f64_print(value, text));
}

void json_out_bool(struct json_out *out, bool value)
{
    json_out_raw(out, value ? "true" : "false", value ? 4 : 5);
}

void json_out_null(struct json_out *out)
{
    json_out_raw(out, "null", 4);
}

void json_out_key_text(struct json_out *out, const char *key, const char *text)
{
    json_out_key(out, key);
    json_out_text(out, text);
}

void json_out_key_i64(struct json_out *out, const char *key, int64_t value)
{
    json_out_key(out, key);
    json_out_i64(out, value);
}

void json_out_key_bool(struct json_out *out, const char *key, bool value)
{
    json_out_key(out, key);
    json_out_bool(out, value);
}

bool json_out_is_whole(const struct json_out *out)
{
    return !out->has_overflowed && out->depth == 0 && !out->is_after_key && out->has_item[0] != 0;
}
