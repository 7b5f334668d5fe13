/* test_stops: a stop string is found wherever tokens cut it, and nothing of it was shown before. */
#include "engine/text/stops.h"

#include "engine/request.h"
#include "tests/text/open_tokenizer.h"

static struct text_room small;
static unsigned int seed = 3;

enum { TEXT_MAX = 2048 };

static unsigned int next_random(unsigned int below)
{
    seed = seed * 1103515245U + 12345U;
    return (seed >> 8) % below;
}

static struct stop_string stop_of(const char *text)
{
    struct stop_string stop = {.bytes = (uint16_t)strlen(text)};
    memcpy(stop.text, text, stop.bytes);
    return stop;
}

/* The ids of a text's bytes, one by one, so that every string crosses tokens. */
static size_t ids_of_bytes(const char *text, int32_t *ids)
{
    size_t count = strlen(text);
    for (size_t i = 0; i < count; i++) {
        ids[i] = small.tokenizer.vocab.byte_ids[(unsigned char)text[i]];
    }
    return count;
}

static void check(const char *text, const char *first, const char *second, bool keeps_match, int32_t matched,
                  uint64_t safe_bytes)
{
    struct stop_string strings[2] = {stop_of(first), stop_of(second)};
    int32_t ids[TEXT_MAX];
    size_t count = ids_of_bytes(text, ids);
    for (size_t step = 1; step <= count; step++) {
        struct stops stops;
        bool is_matched = false;
        stops_open(&stops, strings, 2, true, keeps_match);
        for (size_t given = step; !is_matched; given += step) {
            bool is_last = given >= count;
            is_matched = stops_append(&stops, &small.tokenizer, ids, is_last ? count : given, is_last);
            if (is_last) {
                break;
            }
        }
        CU_ASSERT(stops.matched == matched && stops.safe_bytes == safe_bytes);
        CU_ASSERT_EQUAL(is_matched, matched >= 0);
    }
}

static void the_earliest_stop_ends_the_answer(void)
{
    check("one two three", "three", "two", false, 1, 4);
    check("one two three", "three", "two", true, 1, 7);
    check("aaaab", "aab", "x", false, 0, 2);
    check("abcabcabd", "abcabd", "zz", false, 0, 3);
    check("xab", "ab", "b", false, 0, 1);
    check("xab", "b", "ab", false, 0, 2); /* ends together: the first in the list */
    check("xabc", "abcd", "bc", false, 1, 2);
    check("caf\xc3\xa9 \xf0\x9f\x98\x80!", "\xf0\x9f\x98\x80", "q", false, 0, 6);
    check("stop", "stop", "", false, 0, 0);
    check("nothing here", "ing!", "?", false, -1, 12);
    check("ends in par", "part", "", false, -1, 11);
    check("half \xf0\x9f", "\xef\xbf\xbd", "", false, 0, 5);
}

static void what_may_become_a_stop_is_held_back(void)
{
    struct stop_string strings[1] = {stop_of("\n\nUser:")};
    struct stops stops;
    int32_t ids[TEXT_MAX];
    size_t count = ids_of_bytes("Hi\n\n\nUse it", ids);
    static const uint64_t safe[] = {0, 1, 2, 2, 2, 3, 3, 3, 3, 9, 10, 11};
    stops_open(&stops, strings, 1, true, false);
    for (size_t given = 0; given <= count; given++) {
        CU_ASSERT_FALSE(stops_append(&stops, &small.tokenizer, ids, given, false));
        CU_ASSERT_EQUAL(stops.safe_bytes, safe[given]);
    }
}

/* The same by searching the whole text after each token. */
static int32_t search(const char *text, size_t bytes, const struct stop_string *strings, uint32_t count,
                      uint64_t *begin)
{
    for (size_t end = 1; end <= bytes; end++) {
        for (uint32_t i = 0; i < count; i++) {
            size_t length = strings[i].bytes;
            if (length > 0 && length <= end && memcmp(text + end - length, strings[i].text, length) == 0) {
                *begin = end - length;
                return (int32_t)i;
            }
        }
    }
    *begin = bytes;
    return -1;
}

static void random_stops_are_found_as_a_search_finds_them(void)
{
    for (int round = 0; round < 20000; round++) {
        struct stop_string strings[STOP_STRINGS_MAX];
        struct stops stops;
        int32_t ids[64];
        char text[TEXT_MAX];
        uint32_t string_count = next_random(4);
        size_t count = next_random(64);
        for (uint32_t i = 0; i < string_count; i++) {
            strings[i].bytes = (uint16_t)next_random(7);
            for (uint16_t k = 0; k < strings[i].bytes; k++) {
                strings[i].text[k] = (char)('a' + next_random(2));
            }
        }
        for (size_t i = 0; i < count; i++) {
            ids[i] = small.tokenizer.vocab.byte_ids[next_random(12) == 0 ? 0xe4 : 'a' + next_random(2)];
        }
        struct detok detok;
        detok_open(&detok, false);
        size_t bytes = detok_read(&detok, &small.tokenizer, ids, count, true, UINT64_MAX, text, sizeof text);
        uint64_t expected;
        int32_t found = search(text, bytes, strings, string_count, &expected);

        stops_open(&stops, strings, string_count, false, false);
        uint64_t last = 0;
        for (size_t given = 1; given <= count && stops.matched < 0; given++) {
            (void)stops_append(&stops, &small.tokenizer, ids, given, given == count);
            CU_ASSERT_FATAL(stops.safe_bytes >= last && stops.safe_bytes <= expected);
            last = stops.safe_bytes;
        }
        CU_ASSERT_EQUAL(stops.matched, found);
        CU_ASSERT_EQUAL(stops.safe_bytes, expected);
    }
}

static void the_longest_strings_stay_cheap(void)
{
    struct stop_string strings[STOP_STRINGS_MAX];
    struct stops stops;
    int32_t ids[TEXT_MAX];
    for (int i = 0; i < STOP_STRINGS_MAX; i++) {
        strings[i].bytes = STOP_BYTES_MAX;
        memset(strings[i].text, 'a', STOP_BYTES_MAX);
        strings[i].text[STOP_BYTES_MAX - 1] = 'b';
    }
    for (int i = 0; i < TEXT_MAX; i++) {
        ids[i] = small.tokenizer.vocab.byte_ids['a'];
    }
    stops_open(&stops, strings, STOP_STRINGS_MAX, true, false);
    CU_ASSERT_FALSE(stops_append(&stops, &small.tokenizer, ids, TEXT_MAX, false));
    CU_ASSERT_EQUAL(stops.safe_bytes, TEXT_MAX - (STOP_BYTES_MAX - 1));
    (void)printf("stops: %zu bytes a request\n", sizeof stops);
}

static void open_all(void)
{
    CU_ASSERT_FATAL(open_folder(&small, 1088, "tests/data/fixtures/tokenizer-small", false, NULL));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(open_all),
        CASE(the_earliest_stop_ends_the_answer),
        CASE(what_may_become_a_stop_is_held_back),
        CASE(random_stops_are_found_as_a_search_finds_them),
        CASE(the_longest_strings_stay_cheap),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "text/stops", cases, NULL);
}
