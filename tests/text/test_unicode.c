/* test_unicode: classes and NFC equal the reference's; long runs of marks in linear time. */
#include "engine/text/unicode.h"

#include "engine/text/utf8.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    GOLDEN_BYTES_MAX = 1024 * 1024,
    LINE_TEXT_MAX = 256,
};

static char *golden;

static void read_golden(void)
{
    golden = harness_memory(GOLDEN_BYTES_MAX);
    CU_ASSERT_FATAL(harness_read("tests/data/goldens/unicode.txt", golden, GOLDEN_BYTES_MAX - 1) > 0);
}

static void classes_are_the_reference_s(void)
{
    static unsigned char expected[UTF8_CODE_MAX + 1];
    int wrong = 0;
    for (const char *line = golden; line != NULL; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        unsigned int first;
        unsigned int last;
        char class;
        if (sscanf(line, "%c %x %x", &class, &first, &last) == 3 && strchr("LNS", class) != NULL) {
            memset(expected + first, class, last - first + 1);
        }
    }
    for (uint32_t code = 1; code <= UTF8_CODE_MAX; code++) {
        static const char names[] = {[UNICODE_LETTER] = 'L', [UNICODE_NUMBER] = 'N', [UNICODE_SPACE] = 'S'};
        wrong += names[unicode_class(code)] != expected[code];
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Reads "e9 301" up to `end` as UTF-8. */
static size_t read_codes(const char *at, const char *end, char *text)
{
    size_t bytes = 0;
    while (at < end) {
        char *next;
        unsigned long code = strtoul(at, &next, 16);
        if (next == at || next > end) {
            break;
        }
        bytes += (size_t)utf8_encode((uint32_t)code, text + bytes);
        at = next;
    }
    return bytes;
}

static size_t nfc(const char *text, size_t bytes, char *out, size_t capacity)
{
    static uint32_t scratch[LINE_TEXT_MAX * 8];
    size_t length = 0;
    CU_ASSERT(unicode_nfc_scratch_bytes(bytes) <= sizeof scratch);
    CU_ASSERT_FATAL(unicode_nfc(text, bytes, out, capacity, scratch, unicode_nfc_scratch_bytes(bytes), &length));
    return length;
}

static void the_normal_form_is_the_reference_s(void)
{
    int case_count = 0;
    int wrong_count = 0;
    for (const char *line = golden; line != NULL; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char text[LINE_TEXT_MAX];
        char expected[LINE_TEXT_MAX];
        char out[LINE_TEXT_MAX];
        if (line[0] != 'C') {
            continue;
        }
        size_t bytes = read_codes(line + 1, strchr(line, '='), text);
        size_t expected_bytes = read_codes(strchr(line, '=') + 1, strchr(line, '\n'), expected);
        size_t length = nfc(text, bytes, out, sizeof out);
        bool is_nfc = expected_bytes == bytes && memcmp(text, expected, bytes) == 0;
        bool is_quick = unicode_nfc_prefix(text, bytes) == bytes;
        bool is_equal = length == expected_bytes && memcmp(out, expected, length) == 0 && (is_nfc || !is_quick);
        if (!is_equal) {
            (void)fprintf(stderr, "%.*s\n", (int)strcspn(line, "\n"), line);
        }
        wrong_count += !is_equal;
        case_count++;
    }
    CU_ASSERT(case_count > 4000 && wrong_count == 0);
}

static void a_normal_text_is_seen_at_a_glance(void)
{
    static const char *const texts[] = {
        "plain English, long enough for words",
        "caf\xc3\xa9 gr\xc3\xbc\xc3\x9f",
        "\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97",
        "\xe3\x81\x8c\xe3\x83\x91", /* kana with marks */
        "\xed\x95\x9c\xea\xb5\xad\xec\x96\xb4",
        "\xe1\xba\xbf \xe1\xbb\x87", /* Vietnamese */
        "\xf0\x9f\x98\x80",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CU_ASSERT_EQUAL(unicode_nfc_prefix(texts[i], strlen(texts[i])), strlen(texts[i]));
    }
    CU_ASSERT_EQUAL(unicode_nfc_prefix("abcdefghe\xcc\x81", 11), 8);
}

static void every_capacity_is_kept(void)
{
    static const char text[] = "x\xf0\x9d\x85\xa0"
                               "e\xcc\x81\xe0\xa5\x98"; /* grows, shrinks, is excluded */
    char whole[64];
    size_t length = nfc(text, sizeof text - 1, whole, sizeof whole);
    for (size_t capacity = 0; capacity <= length; capacity++) {
        uint32_t scratch[128];
        size_t got = 77;
        char *out = harness_memory(capacity + 1);
        out[capacity] = '~';
        bool fits = unicode_nfc(text, sizeof text - 1, out, capacity, scratch, sizeof scratch, &got);
        CU_ASSERT(fits == (capacity == length) && out[capacity] == '~');
        CU_ASSERT(!fits || (got == length && memcmp(out, whole, length) == 0));
    }
}

static void long_runs_of_marks_take_linear_time(void)
{
    enum { MARKS = 1 << 18 };
    size_t bytes = 1 + 2 * (size_t)MARKS;
    char *text = harness_memory(bytes);
    char *out = harness_memory(bytes);
    size_t scratch_bytes = unicode_nfc_scratch_bytes(bytes);
    void *scratch = harness_memory((scratch_bytes + 63) / 64 * 64);
    struct timespec begin;
    struct timespec end;
    size_t length;
    text[0] = 'q';
    for (size_t i = 0; i < MARKS; i++) {
        memcpy(text + 1 + 2 * i, i % 3 == 0 ? "\xcc\x81" : i % 3 == 1 ? "\xcc\xa7" : "\xcc\xb4", 2);
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    CU_ASSERT(unicode_nfc(text, bytes, out, bytes, scratch, scratch_bytes, &length));
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    (void)printf("unicode: %d marks in %.3f s\n", MARKS, seconds);
    CU_ASSERT(seconds < 0.5 && length == bytes);
    CU_ASSERT(memcmp(out + 1, "\xcc\xb4\xcc\xb4", 4) == 0);
    CU_ASSERT(memcmp(out + bytes - 4, "\xcc\x81\xcc\x81", 4) == 0);
}

static void printable_is_what_python_prints(void)
{
    static const struct {
        uint32_t code;
        bool is_printable;
    } cases[] = {{'a', true},     {' ', true},     {0x7f, false},   {0xa0, false},    {0xad, false},
                 {0xe9, true},    {0x200b, false}, {0x3000, false}, {0x4e2d, true},   {0x1f600, true},
                 {0xe000, false}, {0x378, false},  {0x2028, false}, {0x10ffff, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CU_ASSERT_EQUAL(unicode_is_printable(cases[i].code), cases[i].is_printable);
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(read_golden),
        CASE(classes_are_the_reference_s),
        CASE(the_normal_form_is_the_reference_s),
        CASE(a_normal_text_is_seen_at_a_glance),
        CASE(every_capacity_is_kept),
        CASE(long_runs_of_marks_take_linear_time),
        CASE(printable_is_what_python_prints),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "text/unicode", cases, NULL);
}
