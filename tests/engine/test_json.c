/* test_json: what RFC 8259 allows is read, the rest is refused; in place, raw and skipped readings agree. */
#include "engine/json.h"
#include "tests/harness.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char suite_folder[] = "tests/data/json/JSONTestSuite/test_parsing";

enum { FILE_BYTES_MAX = 1024 * 1024 };

/* Reads a whole document; counts its events. */
static enum err read_all(struct json_reader *reader, unsigned int *event_count)
{
    struct json_event event = {.kind = JSON_NONE};
    enum err err = ERR_OK;
    unsigned int count = 0;
    while (event.kind != JSON_END && (err = json_next(reader, &event)) == ERR_OK) {
        count++;
    }
    *event_count = count;
    return err;
}

static enum err read_text(const char *text, unsigned int *event_count)
{
    struct json_reader reader;
    json_open_raw(&reader, text, strlen(text));
    return read_all(&reader, event_count);
}

static void the_parsing_suite_is_judged_right(void)
{
    char *bytes = harness_memory(FILE_BYTES_MAX);
    DIR *folder = opendir(suite_folder);
    int counts[3] = {0, 0, 0};

    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[512];
        if (strchr("yni", entry->d_name[0]) == NULL || entry->d_name[1] != '_') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", suite_folder, entry->d_name);
        for (int is_in_place = 0; is_in_place < 2; is_in_place++) {
            struct json_reader reader;
            unsigned int count;
            long length = harness_read(path, bytes, FILE_BYTES_MAX);
            CU_ASSERT(length >= 0);
            if (is_in_place) {
                json_open(&reader, bytes, (size_t)length);
            } else {
                json_open_raw(&reader, bytes, (size_t)length);
            }
            enum err err = read_all(&reader, &count);
            int is_right = entry->d_name[0] == 'i' || (err == ERR_OK) == (entry->d_name[0] == 'y');
            if (!is_right) {
                (void)fprintf(stderr, "%s: %d %s\n", entry->d_name, (int)err, reader.reason);
            }
            CU_ASSERT(is_right);
            CU_ASSERT(err == ERR_OK || (reader.reason != NULL && reader.error_at <= (size_t)length));
        }
        counts[entry->d_name[0] == 'y' ? 0 : entry->d_name[0] == 'n' ? 1 : 2]++;
    }
    (void)closedir(folder);
    CU_ASSERT(counts[0] >= 95 && counts[1] >= 185 && counts[2] >= 30);
}

static void nesting_is_bounded(void)
{
    char text[2 * JSON_DEPTH_MAX + 3];
    unsigned int count;
    for (int depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        CU_ASSERT_EQUAL(read_text(text, &count), depth <= JSON_DEPTH_MAX ? ERR_OK : ERR_TOO_DEEP);
    }
}

static void a_refusal_is_final_and_tells_where(void)
{
    struct json_reader reader;
    struct json_event event;
    unsigned int count;
    json_open_raw(&reader, "{\"a\":1,}", 8);

    CU_ASSERT_EQUAL(read_all(&reader, &count), ERR_BAD_JSON);
    CU_ASSERT_EQUAL(reader.error_at, 7);
    CU_ASSERT_STRING_EQUAL(reader.reason, "a key is expected");
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_BAD_JSON);
    CU_ASSERT_EQUAL(json_skip(&reader), ERR_BAD_JSON);
}

static void strings_are_unescaped_in_place(void)
{
    char text[] = "[\"a\\u00e9\\n\\/\\\\\\\"\\ud83d\\ude00z\",\"\\ud800x\",\"\\udc00\\ud800\\u0041\",\"\\u0000\"]";
    static const struct json_span expected[] = {
        {"a\xc3\xa9\n/\\\"\xf0\x9f\x98\x80z", 12},
        {"\xef\xbf\xbdx", 4},
        {"\xef\xbf\xbd\xef\xbf\xbd"
         "A",
         7},
        {"\0", 1},
    };
    struct json_reader reader;
    struct json_event event;
    json_open(&reader, text, strlen(text));

    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
        CU_ASSERT_EQUAL(event.kind, JSON_STRING);
        CU_ASSERT_EQUAL(event.bytes, expected[i].length);
        CU_ASSERT_EQUAL(memcmp(event.text, expected[i].bytes, expected[i].length), 0);
    }
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    CU_ASSERT_EQUAL(event.kind, JSON_END);
}

static void a_raw_string_unescapes_later(void)
{
    static const char text[] = "\"tab\\there \\u4e2d\"";
    char out[sizeof text];
    struct json_reader reader;
    struct json_event event;
    json_open_raw(&reader, text, strlen(text));

    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    CU_ASSERT_EQUAL(event.bytes, strlen(text) - 2);
    size_t length = json_unescape(event.text, event.bytes, out);
    CU_ASSERT_EQUAL(length, 12);
    CU_ASSERT_EQUAL(memcmp(out, "tab\there \xe4\xb8\xad", length), 0);
}

static void a_skipped_span_is_the_whole_value_untouched(void)
{
    char text[] = " {\"a\" : [1, {\"b\":\"\\n]\"}] , \"c\": \"\\t\" , \"d\":{\"e\":[]} }";
    struct json_reader reader;
    struct json_event event;
    struct json_span span;
    json_open(&reader, text, strlen(text));

    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    CU_ASSERT(json_event_is(&event, "a"));
    CU_ASSERT_EQUAL(json_skip_raw(&reader, &span), ERR_OK);
    CU_ASSERT_EQUAL(span.length, 16);
    CU_ASSERT_EQUAL(memcmp(span.bytes, "[1, {\"b\":\"\\n]\"}]", 16), 0);

    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    CU_ASSERT(json_event_is(&event, "c"));
    CU_ASSERT_EQUAL(json_skip(&reader), ERR_OK);
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    CU_ASSERT(json_event_is(&event, "d"));
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    CU_ASSERT_EQUAL(json_skip_raw(&reader, &span), ERR_OK);
    CU_ASSERT_EQUAL(span.length, 8);
    CU_ASSERT_EQUAL(memcmp(span.bytes, "{\"e\":[]}", 8), 0);
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    CU_ASSERT_EQUAL(event.kind, JSON_OBJECT_END);
    CU_ASSERT_EQUAL(json_skip(&reader), ERR_OK);
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    CU_ASSERT_EQUAL(event.kind, JSON_END);
}

static void whole_numbers_are_exact(void)
{
    static const struct {
        const char *literal;
        int is_whole;
        int64_t value;
    } cases[] = {
        {"0", 1, 0},
        {"-0", 1, 0},
        {"0.000", 1, 0},
        {"0e99999999999999999999", 1, 0},
        {"1.0", 1, 1},
        {"1e3", 1, 1000},
        {"1.25E+2", 1, 125},
        {"1200e-2", 1, 12},
        {"100000000000000000000000e-20", 1, 1000},
        {"9223372036854775807", 1, INT64_MAX},
        {"-9223372036854775808", 1, INT64_MIN},
        {"9223372036854775808", 0, 0},
        {"-9223372036854775809", 0, 0},
        {"9007199254740993", 1, 9007199254740993},
        {"1e19", 0, 0},
        {"1e18", 1, 1000000000000000000},
        {"1e99999999999999999999", 0, 0},
        {"1e-99999999999999999999", 0, 0},
        {"0.5", 0, 0},
        {"12e-1", 0, 0},
        {"1.", 0, 0},
        {"01", 0, 0},
        {"1x", 0, 0},
        {"", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = 77;
        int is_whole = json_number_i64(cases[i].literal, strlen(cases[i].literal), &value);
        if (is_whole != cases[i].is_whole || value != (is_whole ? cases[i].value : 77)) {
            (void)fprintf(stderr, "%s -> %d %lld\n", cases[i].literal, is_whole, (long long)value);
            CU_FAIL("a number");
        }
    }
}

static void real_numbers_round_and_overflow_is_told(void)
{
    double value = 7;
    CU_ASSERT(json_number_f64("0.1", 3, &value) && value == 0.1);
    CU_ASSERT(json_number_f64("1.7976931348623157e308", 22, &value) && isfinite(value));
    CU_ASSERT(json_number_f64("1e-999", 6, &value) && value == 0);
    value = 7;
    CU_ASSERT(!json_number_f64("1e309", 5, &value) && value == 7);
    CU_ASSERT(!json_number_f64("-1e309", 6, &value) && value == 7);
}

static void a_number_has_a_longest_form(void)
{
    char text[JSON_NUMBER_BYTES_MAX + 2];
    unsigned int count;
    memset(text, '1', sizeof text);
    text[JSON_NUMBER_BYTES_MAX] = '\0';
    CU_ASSERT_EQUAL(read_text(text, &count), ERR_OK);
    text[JSON_NUMBER_BYTES_MAX] = '1';
    text[JSON_NUMBER_BYTES_MAX + 1] = '\0';
    CU_ASSERT_EQUAL(read_text(text, &count), ERR_TOO_DEEP);
}

static void every_beginning_of_a_document_is_refused(void)
{
    static const char text[] =
        "{\"a\\u00e9\xc3\xa9\":[1,-0.5e+10,true,false,null,\"\\ud83d\\ude00\",[],{}], \"b\" : {\"c\":\"\"}}";
    unsigned int count;
    struct json_reader reader;

    for (size_t cut = 0; cut < sizeof text; cut++) {
        char *bytes = harness_memory(cut + 1);
        memcpy(bytes, text, cut);
        json_open_raw(&reader, bytes, cut);
        CU_ASSERT_EQUAL(read_all(&reader, &count), cut < sizeof text - 1 ? ERR_BAD_JSON : ERR_OK);
    }
}

static void a_stop_is_seen_at_every_place_of_a_word(void)
{
    static const char stops[] = {'\\', '"', '\x1f', '\0', '\x80'};
    for (size_t place = 0; place < 40; place++) {
        for (size_t s = 0; s < sizeof stops; s++) {
            char text[64];
            unsigned int count;
            struct json_reader reader;
            memset(text, 0x7f, sizeof text);
            text[0] = '"';
            text[1 + place] = stops[s];
            text[2 + place] = 'n';
            text[48] = '"';
            json_open_raw(&reader, text, stops[s] == '"' ? 2 + place : 49);
            CU_ASSERT_EQUAL(read_all(&reader, &count), s < 2 ? ERR_OK : ERR_BAD_JSON);
            CU_ASSERT(s < 2 || reader.error_at == 1 + place);
        }
    }
}

static void long_strings_pass_at_memory_speed(void)
{
    size_t length = 32 * 1024 * 1024;
    char *bytes = harness_memory(length);
    struct json_reader reader;
    struct json_event event;
    struct timespec begin;
    struct timespec end;

    memset(bytes, 'A', length);
    bytes[0] = '"';
    bytes[length - 1] = '"';
    json_open(&reader, bytes, length);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    CU_ASSERT_EQUAL(event.bytes, length - 2);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    (void)printf("json string scan: %.1f GB/s\n", (double)length / seconds / 1e9);
    CU_ASSERT(seconds < 1.0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_parsing_suite_is_judged_right),
        CASE(nesting_is_bounded),
        CASE(a_refusal_is_final_and_tells_where),
        CASE(strings_are_unescaped_in_place),
        CASE(a_raw_string_unescapes_later),
        CASE(a_skipped_span_is_the_whole_value_untouched),
        CASE(whole_numbers_are_exact),
        CASE(real_numbers_round_and_overflow_is_told),
        CASE(a_number_has_a_longest_form),
        CASE(every_beginning_of_a_document_is_refused),
        CASE(a_stop_is_seen_at_every_place_of_a_word),
        CASE(long_strings_pass_at_memory_speed),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/json", cases, NULL);
}
