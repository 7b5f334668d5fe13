/* test_utf8: every code point goes there and back; everything else is refused with the right number of bytes. */
#include "engine/text/utf8.h"
#include "tests/harness.h"

#include <string.h>

static void every_scalar_value_goes_there_and_back(void)
{
    int wrong = 0;
    for (uint32_t code = 0; code <= UTF8_CODE_MAX; code++) {
        char bytes[UTF8_BYTES_MAX];
        uint32_t read = 1;
        if (code >= 0xd800 && code <= 0xdfff) {
            continue;
        }
        int length = utf8_encode(code, bytes);
        wrong += utf8_decode(bytes, (size_t)length, &read) != length || read != code;
        for (int cut = 0; cut < length; cut++) {
            wrong += utf8_decode(bytes, (size_t)cut, &read) != 0;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void invalid_bytes_count_as_maximal_subparts(void)
{
    static const struct {
        const char *bytes;
        int step;
    } cases[] = {
        {"\x80", -1},         {"\xbf", -1},         {"\xc0\x80", -1},      {"\xc1\xbf", -1},
        {"\xc2 ", -1},        {"\xe0\x80\x80", -1}, {"\xe0\xa0 ", -2},     {"\xed\xa0\x80", -1},
        {"\xef\xbf ", -2},    {"\xf0\x80\x80", -1}, {"\xf0\x90\x80 ", -3}, {"\xf4\x90\x80\x80", -1},
        {"\xf5\x80\x80", -1}, {"\xff", -1},         {"\xf1\x80\xc0", -2},  {"\xe1\x80", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t code;
        CU_ASSERT_EQUAL(utf8_decode(cases[i].bytes, strlen(cases[i].bytes), &code), cases[i].step);
    }
}

static void the_valid_beginning_ends_at_the_first_fault(void)
{
    static const char text[] = "sixteen plain and \xe4\xb8\xad\xf0\x9f\x98\x80 wide\xff rest";
    size_t fault = (size_t)(strchr(text, '\xff') - text);

    CU_ASSERT_EQUAL(utf8_valid_bytes(text, sizeof text - 1), fault);
    for (size_t cut = 0; cut <= fault; cut++) {
        size_t valid = utf8_valid_bytes(text, cut);
        CU_ASSERT(valid <= cut && cut - valid < UTF8_BYTES_MAX);
    }
}

static void faults_are_replaced_as_the_test_cases_have_it(void)
{
    char *text = harness_memory(8192);
    char *expected = harness_memory(8192);
    char *out = harness_memory(3 * 8192);
    long bytes = harness_read("tests/data/text/utf8tests.bin", text, 8192);
    long expected_bytes = harness_read("tests/data/text/utf8tests.replace.ref.txt", expected, 8192);
    size_t length = 0;
    CU_ASSERT_FATAL(bytes > 0 && expected_bytes > 0);
    for (size_t at = 0; at < (size_t)bytes;) {
        uint32_t code;
        int step = utf8_decode(text + at, (size_t)bytes - at, &code);
        size_t used = step > 0 ? (size_t)step : step < 0 ? (size_t)-step : (size_t)bytes - at;
        memcpy(out + length, step > 0 ? text + at : UTF8_REPLACEMENT, step > 0 ? used : UTF8_REPLACEMENT_BYTES);
        length += step > 0 ? used : UTF8_REPLACEMENT_BYTES;
        at += used;
    }
    CU_ASSERT(length == (size_t)expected_bytes && memcmp(out, expected, length) == 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_scalar_value_goes_there_and_back),
        CASE(invalid_bytes_count_as_maximal_subparts),
        CASE(faults_are_replaced_as_the_test_cases_have_it),
        CASE(the_valid_beginning_ends_at_the_first_fault),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "text/utf8", cases, NULL);
}
