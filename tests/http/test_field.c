/* test_field: a value is taken if it has its type and range, and refused by name otherwise. */
#include "engine/http/field.h"
#include "tests/harness.h"

#include <string.h>

static struct request request;
static struct field_reader reader;
static char text[256];

/* The first event of `json`. */
static struct json_event open(const char *json)
{
    struct json_event event = {.kind = JSON_NONE};

    request_open(&request, 0, 1, 1, 1);
    memset(&reader, 0, sizeof reader);
    reader.request = &request;
    (void)strncpy(text, json, sizeof text - 1);
    json_open(&reader.json, text, strlen(text));
    enum err err = field_next(&reader, &event);
    CU_ASSERT(err == ERR_OK || request.err == err);
    return event;
}

static void numbers_keep_to_their_range(void)
{
    float value = -7;
    struct json_event event = open("0.25");

    CU_ASSERT(field_number(&reader, &event, "x", 0, 1, true, "in (0, 1]", &value) == ERR_OK && value == 0.25F);
    event = open("0");
    CU_ASSERT(field_number(&reader, &event, "x", 0, 1, false, "in [0, 1]", &value) == ERR_OK && value == 0);
    value = -7;
    CU_ASSERT(field_number(&reader, &event, "x", 0, 1, true, "in (0, 1]", &value) == ERR_BAD_FIELD && value == -7);
    CU_ASSERT_STRING_EQUAL(request.err_param, "x");
    CU_ASSERT_STRING_EQUAL(request.err_detail, "x must be in (0, 1]");
    event = open("1e999");
    CU_ASSERT(field_number(&reader, &event, "x", 0, 1e300, false, "finite", &value) == ERR_BAD_FIELD);
    event = open("\"1\"");
    CU_ASSERT(field_number(&reader, &event, "x", 0, 1, false, "in [0, 1]", &value) == ERR_BAD_FIELD);
    CU_ASSERT_STRING_EQUAL(request.err_detail, "x must be a number");
}

static void whole_numbers_never_wrap(void)
{
    int64_t value = -7;
    struct json_event event = open("5.0");

    CU_ASSERT(field_whole(&reader, &event, "x", 1, 9, "in [1, 9]", &value) == ERR_OK && value == 5);
    static const char *const bad[] = {"5.5", "18446744073709551621", "1e30", "0", "10", "true", "\"5\"", "[5]"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        event = open(bad[i]);
        value = -7;
        CU_ASSERT(field_whole(&reader, &event, "x", 1, 9, "in [1, 9]", &value) == ERR_BAD_FIELD && value == -7);
    }
}

static void switches_are_true_or_false(void)
{
    bool value = false;
    struct json_event event = open("true");

    CU_ASSERT(field_switch(&reader, &event, "x", &value) == ERR_OK && value);
    event = open("1");
    CU_ASSERT(field_switch(&reader, &event, "x", &value) == ERR_BAD_FIELD && value);
}

static void kinds_are_named_when_they_are_wrong(void)
{
    struct json_event event = open("5");

    CU_ASSERT(field_expect(&reader, &event, "x", JSON_OBJECT_BEGIN) == ERR_BAD_FIELD);
    CU_ASSERT_STRING_EQUAL(request.err_detail, "x must be an object");
    event = open("[");
    CU_ASSERT(field_expect(&reader, &event, "x", JSON_ARRAY_BEGIN) == ERR_OK);
    CU_ASSERT(field_expect(&reader, &event, "x", JSON_STRING) == ERR_BAD_FIELD);
}

static void broken_json_says_where(void)
{
    struct json_event event = open("[1,}");

    CU_ASSERT(event.kind == JSON_ARRAY_BEGIN);
    CU_ASSERT(field_skip(&reader) == ERR_BAD_JSON);
    CU_ASSERT_PTR_NOT_NULL(strstr(request.err_detail, "at byte 3"));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(numbers_keep_to_their_range),         CASE(whole_numbers_never_wrap), CASE(switches_are_true_or_false),
        CASE(kinds_are_named_when_they_are_wrong), CASE(broken_json_says_where),   {NULL, NULL},
    };
    return harness_run(argc, argv, "http/field", cases, NULL);
}
