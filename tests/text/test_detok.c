/* test_detok: the reference's text for any ids, the same in pieces of any size, and only whole characters. */
#include "engine/text/detok.h"

#include "engine/json.h"
#include "tests/text/open_tokenizer.h"

static struct text_room small;
static unsigned int seed = 1;

enum {
    IDS_MAX = 64,
    TEXT_MAX = 4096,
};

static unsigned int next_random(unsigned int below)
{
    seed = seed * 1103515245U + 12345U;
    return (seed >> 8) % below;
}

static size_t read_whole(const int32_t *ids, size_t count, bool skips_special, char *text)
{
    struct detok detok;
    detok_open(&detok, skips_special);
    size_t bytes = detok_read(&detok, &small.tokenizer, ids, count, true, UINT64_MAX, text, TEXT_MAX);
    CU_ASSERT_EQUAL(detok.text_bytes, bytes);
    return bytes;
}

static void the_fixture_texts_come_out(void)
{
    char *bytes = harness_memory(65536);
    long length = harness_read("tests/data/fixtures/tokenizer-small/vectors.json", bytes, 65536);
    struct json_reader reader;
    struct json_event event = {.kind = JSON_NONE};
    int32_t ids[512];
    size_t count = 0;
    int checked = 0;
    json_open(&reader, bytes, (size_t)length);
    while (event.kind != JSON_END && json_next(&reader, &event) == ERR_OK) {
        if (event.kind == JSON_KEY && json_event_is(&event, "ids")) {
            count = 0;
            CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
            while (json_next(&reader, &event) == ERR_OK && event.kind == JSON_NUMBER) {
                int64_t id = 0;
                CU_ASSERT(json_number_i64(event.text, event.bytes, &id));
                ids[count++] = (int32_t)id;
            }
        } else if (event.kind == JSON_KEY &&
                   (json_event_is(&event, "decoded") || json_event_is(&event, "decoded_skip_special"))) {
            char text[TEXT_MAX];
            size_t written = read_whole(ids, count, !json_event_is(&event, "decoded"), text);
            CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
            CU_ASSERT(written == event.bytes && memcmp(text, event.text, written) == 0);
            checked++;
        }
    }
    CU_ASSERT_EQUAL(checked, 66);
}

static void malformed_bytes_become_replacements(void)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"a\xf0\x9f\x98", "a\xef\xbf\xbd"},
        {"\xf0\x9f"
         "a",
         "\xef\xbf\xbd"
         "a"},
        {"\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe4\xb8\xe4\xb8\xad", "\xef\xbf\xbd\xe4\xb8\xad"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xf4\x90\xff", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t ids[16];
        char text[TEXT_MAX];
        size_t count = strlen(cases[i].bytes);
        for (size_t k = 0; k < count; k++) {
            ids[k] = small.tokenizer.vocab.byte_ids[(unsigned char)cases[i].bytes[k]];
        }
        size_t bytes = read_whole(ids, count, true, text);
        CU_ASSERT(bytes == strlen(cases[i].text) && memcmp(text, cases[i].text, bytes) == 0);
    }
}

/* Random ids, many of them single bytes, added tokens, or beyond the vocabulary. */
static size_t random_ids(int32_t *ids)
{
    static const unsigned char bytes[] = {0xf0, 0x9f, 0x98, 0x80, 0xe4, 0xb8, 0xad, 0xc3, 0xa9, 'a'};
    size_t count = next_random(IDS_MAX);
    for (size_t i = 0; i < count; i++) {
        ids[i] = next_random(3) == 0 ? (int32_t)next_random(1100) - 5
                                     : small.tokenizer.vocab.byte_ids[bytes[next_random(sizeof bytes)]];
    }
    return count;
}

static void any_split_equals_the_whole(void)
{
    for (int round = 0; round < 20000; round++) {
        int32_t ids[IDS_MAX];
        char whole[TEXT_MAX];
        char pieces[TEXT_MAX];
        struct detok detok;
        size_t count = random_ids(ids);
        bool skips_special = round % 2 == 0;
        size_t bytes = read_whole(ids, count, skips_special, whole);
        size_t given = 0;
        size_t total = 0;
        CU_ASSERT_EQUAL(utf8_valid_bytes(whole, bytes), bytes);

        detok_open(&detok, skips_special);
        while (total < bytes) {
            given = next_random(2) == 0 || given == count ? given : given + 1;
            given = given < detok.next_id ? detok.next_id : given;
            size_t capacity = UTF8_BYTES_MAX + next_random(9);
            size_t got =
                detok_read(&detok, &small.tokenizer, ids, given, given == count, UINT64_MAX, pieces + total, capacity);
            CU_ASSERT_FATAL(got <= capacity && total + got <= bytes);
            CU_ASSERT_EQUAL(utf8_valid_bytes(pieces + total, got), got);
            total += got;
        }
        CU_ASSERT_EQUAL(memcmp(whole, pieces, bytes), 0);
        CU_ASSERT_EQUAL(detok.text_bytes, bytes);
    }
}

static void a_limit_between_characters_is_kept(void)
{
    for (int round = 0; round < 5000; round++) {
        int32_t ids[IDS_MAX];
        char whole[TEXT_MAX];
        char piece[TEXT_MAX];
        struct detok detok;
        size_t count = random_ids(ids);
        size_t bytes = read_whole(ids, count, true, whole);
        detok_open(&detok, true);
        for (size_t limit = 0; limit <= bytes; limit++) {
            if (limit < bytes && ((unsigned char)whole[limit] & 0xc0) == 0x80) {
                continue;
            }
            uint64_t before = detok.text_bytes;
            size_t got = detok_read(&detok, &small.tokenizer, ids, count, true, limit, piece, sizeof piece);
            CU_ASSERT(detok.text_bytes == limit && memcmp(piece, whole + before, got) == 0);
        }
    }
}

static void a_character_in_pieces_waits_for_its_end(void)
{
    static const char smile[] = "\xf0\x9f\x98\x80";
    int32_t ids[4];
    char text[8];
    struct detok detok;
    detok_open(&detok, true);
    for (size_t i = 0; i < 4; i++) {
        ids[i] = small.tokenizer.vocab.byte_ids[(unsigned char)smile[i]];
        size_t bytes = detok_read(&detok, &small.tokenizer, ids, i + 1, false, UINT64_MAX, text, sizeof text);
        CU_ASSERT_EQUAL(bytes, i < 3 ? 0 : 4);
    }
    CU_ASSERT_EQUAL(memcmp(text, smile, 4), 0);
    CU_ASSERT_EQUAL(detok_read(&detok, &small.tokenizer, ids, 4, true, UINT64_MAX, text, sizeof text), 0);
}

static void open_all(void)
{
    CU_ASSERT_FATAL(open_folder(&small, 1088, "tests/data/fixtures/tokenizer-small", false, NULL));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(open_all),
        CASE(the_fixture_texts_come_out),
        CASE(malformed_bytes_become_replacements),
        CASE(any_split_equals_the_whole),
        CASE(a_limit_between_characters_is_kept),
        CASE(a_character_in_pieces_waits_for_its_end),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "text/detok", cases, NULL);
}
