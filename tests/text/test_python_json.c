/* test_python_json: values are written letter for letter as Python writes them. */
#include "engine/text/python_json.h"

#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

static const char *written(const char *json, enum python_form form, enum err *err)
{
    static char text[4096];
    static struct text_range ranges[4];
    struct prompt prompt;
    prompt_open(&prompt, text, sizeof text - 1, ranges, 4);
    *err = python_json_put(&prompt, (struct json_span){json, strlen(json)}, form);
    text[prompt.length] = '\0';
    return text;
}

static void values_look_as_python_prints_them(void)
{
    static const struct {
        const char *json, *tojson, *str;
    } cases[] = {
        {"{\"a\":[1,2.50,true,false,null],\"b\":{}}", "{\"a\": [1, 2.5, true, false, null], \"b\": {}}",
         "{'a': [1, 2.5, True, False, None], 'b': {}}"},
        {" [ ] ", "[]", "[]"},
        {"[[],[[]],{\"x\":[{}]}]", "[[], [[]], {\"x\": [{}]}]", "[[], [[]], {'x': [{}]}]"},
        {"\"\\u00e9\\/\\\\\\\"\\n\\t\\b\\u0001\\u007f\\u4e2d\\ud83d\\ude00\"",
         "\"\xc3\xa9/\\\\\\\"\\n\\t\\b\\u0001\x7f\xe4\xb8\xad\xf0\x9f\x98\x80\"",
         "'\xc3\xa9/\\\\\"\\n\\t\\x08\\x01\\x7f\xe4\xb8\xad\xf0\x9f\x98\x80'"},
        {"\"it's\"", "\"it's\"", "\"it's\""},
        {"\"it's \\\"\"", "\"it's \\\"\"", "'it\\'s \"'"},
        {"\"\\u00a0\\u200b\\ue000\\udb80\\udc00\"", "\"\xc2\xa0\xe2\x80\x8b\xee\x80\x80\xf3\xb0\x80\x80\"",
         "'\\xa0\\u200b\\ue000\\U000f0000'"},
        {"[0,-0,-0.0,1e3,1E-7,123456789012345678901234567890,1e400,-1e400]",
         "[0, 0, -0.0, 1000.0, 1e-07, 123456789012345678901234567890, Infinity, -Infinity]",
         "[0, 0, -0.0, 1000.0, 1e-07, 123456789012345678901234567890, inf, -inf]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum err err;
        CU_ASSERT_STRING_EQUAL(written(cases[i].json, PYTHON_TOJSON, &err), cases[i].tojson);
        CU_ASSERT_EQUAL(err, ERR_OK);
        CU_ASSERT_STRING_EQUAL(written(cases[i].json, PYTHON_STR, &err), cases[i].str);
        CU_ASSERT_EQUAL(err, ERR_OK);
    }
}

static void long_strings_pass_in_pieces(void)
{
    char json[2048];
    char expected[2048];
    enum err err;
    for (size_t lead = 0; lead < 8; lead++) {
        size_t bytes = (size_t)snprintf(json, sizeof json, "\"%.*s", (int)lead, "xxxxxxxx");
        size_t length = (size_t)snprintf(expected, sizeof expected, "\"%.*s", (int)lead, "xxxxxxxx");
        for (int i = 0; i < 120; i++) {
            bytes += (size_t)snprintf(json + bytes, sizeof json - bytes, "\xe4\xb8\xad\\u00e9\\\"");
            length += (size_t)snprintf(expected + length, sizeof expected - length, "\xe4\xb8\xad\xc3\xa9\\\"");
        }
        (void)snprintf(json + bytes, sizeof json - bytes, "\"");
        (void)snprintf(expected + length, sizeof expected - length, "\"");
        CU_ASSERT_STRING_EQUAL(written(json, PYTHON_TOJSON, &err), expected);
    }
}

static void what_is_not_json_is_refused(void)
{
    enum err err;
    (void)written("{\"a\":}", PYTHON_TOJSON, &err);
    CU_ASSERT_EQUAL(err, ERR_BAD_JSON);
    (void)written("[1] 2", PYTHON_STR, &err);
    CU_ASSERT_EQUAL(err, ERR_BAD_JSON);
    (void)written("", PYTHON_STR, &err);
    CU_ASSERT_EQUAL(err, ERR_BAD_JSON);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(values_look_as_python_prints_them),
        CASE(long_strings_pass_in_pieces),
        CASE(what_is_not_json_is_refused),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "text/python_json", cases, NULL);
}
