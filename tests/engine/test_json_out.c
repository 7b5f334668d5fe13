/* test_json_out: what is written reads back equal, and never passes the end of the buffer. */
#include "engine/json_out.h"

#include "engine/json.h"
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_sample(struct json_out *out)
{
    json_out_object_begin(out);
    json_out_key_text(out, "id", "a\"b\\\n\x01\xc3\xa9\x7f");
    json_out_key(out, "list");
    json_out_array_begin(out);
    json_out_i64(out, -5);
    json_out_u64(out, UINT64_MAX);
    json_out_f64(out, 0.1);
    json_out_f64(out, NAN);
    json_out_f64(out, (double)INFINITY);
    json_out_array_begin(out);
    json_out_array_end(out);
    json_out_object_begin(out);
    json_out_object_end(out);
    json_out_bool(out, true);
    json_out_array_end(out);
    json_out_key_i64(out, "n", 1);
    json_out_key_bool(out, "f", false);
    json_out_key(out, "raw");
    json_out_raw(out, "[1]", 3);
    json_out_key(out, "null");
    json_out_null(out);
    json_out_object_end(out);
}

static const char sample[] =
    "{\"id\":\"a\\\"b\\\\\\n\\u0001\xc3\xa9\x7f\",\"list\":[-5,18446744073709551615,0.1,null,null,[],{},true],"
    "\"n\":1,\"f\":false,\"raw\":[1],\"null\":null}";

static void a_document_is_written_as_it_should(void)
{
    char *bytes = harness_memory(512);
    struct json_out out;
    json_out_open(&out, bytes, 512);
    CU_ASSERT_FALSE(json_out_is_whole(&out));
    write_sample(&out);
    CU_ASSERT(json_out_is_whole(&out));
    CU_ASSERT_EQUAL(out.length, sizeof sample - 1);
    CU_ASSERT_EQUAL(memcmp(bytes, sample, sizeof sample - 1), 0);
}

static void overflow_is_sticky_at_every_capacity(void)
{
    for (size_t capacity = 0; capacity < sizeof sample; capacity++) {
        char *bytes = harness_memory(capacity + 1);
        struct json_out out;
        bytes[capacity] = '~';
        json_out_open(&out, bytes, capacity);
        write_sample(&out);
        CU_ASSERT_EQUAL(json_out_is_whole(&out), capacity == sizeof sample - 1);
        CU_ASSERT(out.length <= capacity && bytes[capacity] == '~');
        CU_ASSERT_EQUAL(memcmp(bytes, sample, out.length < 10 ? out.length : 10), 0);
    }
}

static void an_escape_goes_on_where_it_stopped(void)
{
    static const char text[] = "plain \"q\" \\ \b\f\t\x1f\x7f caf\xc3\xa9 \xf0\x9f\x98\x80 bad\xff\xe2\x82 end\xe2\x82";
    char whole[128];
    size_t at = 0;
    size_t bytes = sizeof text - 1;
    size_t length = json_escape(text, bytes, &at, whole, sizeof whole);

    CU_ASSERT_EQUAL(at, bytes);
    CU_ASSERT_EQUAL(length, json_escaped_bytes(text, bytes));
    for (size_t capacity = JSON_ESCAPE_BYTES_MAX; capacity < sizeof whole; capacity++) {
        char pieces[128];
        size_t total = 0;
        for (at = 0; at < bytes;) {
            size_t room = capacity < sizeof pieces - total ? capacity : sizeof pieces - total;
            size_t put = json_escape(text, bytes, &at, pieces + total, room);
            CU_ASSERT_FATAL(put > 0);
            total += put;
        }
        CU_ASSERT_EQUAL(total, length);
        CU_ASSERT_EQUAL(memcmp(pieces, whole, length), 0);
    }
}

static void any_bytes_become_a_valid_string(void)
{
    unsigned int seed = 7;
    for (int round = 0; round < 20000; round++) {
        char text[12];
        char document[96];
        struct json_out out;
        struct json_reader reader;
        struct json_event event;
        size_t bytes = (size_t)round % sizeof text;
        for (size_t i = 0; i < bytes; i++) {
            seed = seed * 1103515245U + 12345U;
            text[i] = (char)(seed >> 16);
        }
        json_out_open(&out, document, sizeof document);
        json_out_string(&out, text, bytes);
        CU_ASSERT(json_out_is_whole(&out));
        CU_ASSERT_EQUAL(out.length, json_escaped_bytes(text, bytes) + 2);
        json_open_raw(&reader, document, out.length);
        CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
        CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    }
}

static void numbers_print_as_python_prints_them(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {100.0, "100.0"},
        {0.1, "0.1"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {123456789012345680.0, "1.2345678901234568e+17"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {1e22, "1e+22"},
        {1e300, "1e+300"},
        {5e-324, "5e-324"},
        {-2.5, "-2.5"},
        {1.0 / 3, "0.3333333333333333"},
        {9007199254740993.0, "9007199254740992.0"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {12.75, "12.75"},
        {0.00123, "0.00123"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[JSON_F64_BYTES_MAX];
        int length = json_f64_print(cases[i].value, text);
        text[length] = '\0';
        CU_ASSERT_STRING_EQUAL(text, cases[i].text);
    }
}

static void every_double_reads_back_equal(void)
{
    uint64_t bits = 88172645463325252U;
    int wrong = 0;
    for (int round = 0; round < 100000; round++) {
        double value;
        double read;
        char text[JSON_F64_BYTES_MAX];
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) {
            continue;
        }
        int length = json_f64_print(value, text);
        wrong += !json_number_f64(text, (size_t)length, &read) || memcmp(&read, &value, sizeof value) != 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_document_is_written_as_it_should),
        CASE(overflow_is_sticky_at_every_capacity),
        CASE(an_escape_goes_on_where_it_stopped),
        CASE(any_bytes_become_a_valid_string),
        CASE(numbers_print_as_python_prints_them),
        CASE(every_double_reads_back_equal),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/json_out", cases, NULL);
}
