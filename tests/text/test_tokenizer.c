/* test_tokenizer: the reference's ids on every golden text, from every form of the files; hostile texts in bounded
 * time. */
#include "engine/text/tokenizer.h"

#include "engine/json.h"
#include "tests/text/open_tokenizer.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <time.h>

static const char qwen2[] = "tests/data/tokenizers/qwen2";
static const char qwen2_config[] = "tests/data/models/Qwen2.5-VL-7B-Instruct";
static const char qwen3_config[] = "tests/data/models/Qwen3-VL-4B-Instruct";
static const char small[] = "tests/data/fixtures/tokenizer-small";

enum {
    QWEN2_VOCAB = 151936,
    SMALL_VOCAB = 1088,
};

static struct text_room from_json, from_parts, qwen3, small_json, small_parts;

/* Sanitizers slow everything down. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SECONDS_MAX 20.0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SECONDS_MAX 20.0
#endif
#endif
#ifndef SECONDS_MAX
#define SECONDS_MAX 1.0
#endif

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static size_t encode(struct text_room *room, const char *text, size_t bytes, bool has_added)
{
    struct text_range all = {0, bytes};
    size_t count = 0;
    enum err err = tokenizer_encode(&room->tokenizer, text, bytes, &all, has_added ? 1 : 0, room->ids, TEST_IDS_MAX,
                                    room->scratch, room->scratch_bytes, &count);
    CU_ASSERT_EQUAL(err, ERR_OK);
    return count;
}

/* Reads [1, 2, ...] and compares it with the ids of the last call. */
static bool next_array_equals(struct json_reader *reader, const int32_t *ids, size_t count)
{
    struct json_event event;
    size_t seen = 0;
    bool is_equal = json_next(reader, &event) == ERR_OK && event.kind == JSON_ARRAY_BEGIN;
    while (is_equal && json_next(reader, &event) == ERR_OK && event.kind == JSON_NUMBER) {
        int64_t id;
        is_equal = json_number_i64(event.text, event.bytes, &id) && seen < count && ids[seen] == id;
        seen++;
    }
    return is_equal && seen == count;
}

/* Runs a golden file's cases: objects with a "text" and, behind it, arrays of ids. Returns the cases; -1: a difference.
 */
static int run_cases(struct text_room *room, const char *path, const char *plain_key, const char *added_key)
{
    char *bytes = harness_memory(TEST_FILE_BYTES_MAX);
    long length = harness_read(path, bytes, TEST_FILE_BYTES_MAX);
    struct json_reader reader;
    struct json_event event = {.kind = JSON_NONE};
    struct json_event text = {.kind = JSON_NONE};
    int case_count = 0;
    int wrong_count = 0;

    CU_ASSERT_FATAL(length > 0);
    json_open(&reader, bytes, (size_t)length);
    while (event.kind != JSON_END && json_next(&reader, &event) == ERR_OK) {
        if (event.kind != JSON_KEY) {
            continue;
        }
        if (json_event_is(&event, "text")) {
            CU_ASSERT_EQUAL(json_next(&reader, &text), ERR_OK);
            case_count++;
        } else if (json_event_is(&event, plain_key) || (added_key != NULL && json_event_is(&event, added_key))) {
            size_t count = encode(room, text.text, text.bytes, !json_event_is(&event, plain_key));
            if (!next_array_equals(&reader, room->ids, count)) {
                wrong_count++;
                (void)fprintf(stderr, "%s: %.*s\n", path, text.bytes > 80 ? 80 : (int)text.bytes, text.text);
            }
        }
    }
    CU_ASSERT_EQUAL(reader.err, ERR_OK);
    return wrong_count == 0 ? case_count : -1;
}

static void plain_strings_have_the_reference_ids(void)
{
    CU_ASSERT_EQUAL(run_cases(&from_json, "tests/data/goldens/qwen2-plain-strings.json", "ids", NULL), 575);
    CU_ASSERT_EQUAL(run_cases(&from_parts, "tests/data/goldens/qwen2-plain-strings.json", "ids", NULL), 575);
}

static void added_tokens_are_matched_only_where_they_may_be(void)
{
    CU_ASSERT_EQUAL(run_cases(&qwen3, "tests/data/goldens/qwen3-special-strings.json", "ids_as_plain_text",
                              "ids_with_added_tokens"),
                    24);
    CU_ASSERT_EQUAL(run_cases(&small_json, "tests/data/fixtures/tokenizer-small/vectors.json", "plain_ids", "ids"), 33);
    CU_ASSERT_EQUAL(run_cases(&small_parts, "tests/data/fixtures/tokenizer-small/vectors.json", "plain_ids", "ids"),
                    33);
}

static void the_vectors_of_llama_cpp_hold(void)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    char *texts = harness_memory(8192);
    char *lines = harness_memory(8192);
    long text_bytes = harness_read("tests/data/vocab-vectors/ggml-vocab-qwen2.gguf.inp", texts, 8191);
    long line_bytes = harness_read("tests/data/vocab-vectors/ggml-vocab-qwen2.gguf.out", lines, 8191);
    int case_count = 0;
    CU_ASSERT_FATAL(text_bytes > 0 && line_bytes > 0);

    char *line = lines;
    for (char *text = texts; *text != '\0';) {
        char *end = strstr(text, separator);
        char *line_end = strchr(line, '\n');
        CU_ASSERT_FATAL(end != NULL && line_end != NULL);
        size_t count = encode(&from_json, text, (size_t)(end - text), false);
        size_t seen = 0;
        for (char *at = line; at < line_end;) {
            long id = strtol(at, &at, 10);
            if (at > line_end) {
                break;
            }
            CU_ASSERT(seen < count && from_json.ids[seen] == id);
            seen++;
        }
        CU_ASSERT_EQUAL(seen, count);
        text = end + sizeof separator - 1;
        line = line_end + 1;
        case_count++;
    }
    CU_ASSERT_EQUAL(case_count, 46);
}

/* Encodes a file of texts and compares count and digest with its golden record. */
static bool corpus_is_equal(struct text_room *room, const char *file, size_t file_bytes, int64_t tokens,
                            const char *digest, double *seconds, size_t *total_bytes)
{
    char path[512];
    char hex[2 * SHA256_DIGEST_SIZE + 1];
    unsigned char sum[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    (void)snprintf(path, sizeof path, "tests/data/%.*s", (int)file_bytes, file);
    long length = harness_read(path, room->text, TEST_TEXT_BYTES_MAX);
    if (length < 0) {
        return false;
    }
    double begin = seconds_now();
    size_t count = encode(room, room->text, (size_t)length, false);
    *seconds += seconds_now() - begin;
    *total_bytes += (size_t)length;
    sha256_init(&context);
    sha256_update(&context, count * sizeof(int32_t), (const uint8_t *)room->ids); /* ids are little-endian here */
    sha256_digest(&context, sizeof sum, sum);
    for (size_t i = 0; i < sizeof sum; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    }
    return (int64_t)count == tokens && memcmp(hex, digest, sizeof hex - 1) == 0;
}

static void whole_corpora_have_the_reference_ids(void)
{
    char *bytes = harness_memory(TEST_FILE_BYTES_MAX);
    long length = harness_read("tests/data/goldens/qwen2-corpora.json", bytes, TEST_FILE_BYTES_MAX);
    struct json_reader reader;
    struct json_event event = {.kind = JSON_NONE};
    struct json_event file = {.kind = JSON_NONE};
    struct json_event value;
    int64_t tokens = -1;
    int case_count = 0;
    double seconds = 0;
    size_t total_bytes = 0;

    CU_ASSERT_FATAL(length > 0);
    json_open(&reader, bytes, (size_t)length);
    while (event.kind != JSON_END && json_next(&reader, &event) == ERR_OK) {
        if (event.kind != JSON_KEY) {
            continue;
        }
        if (json_event_is(&event, "file")) {
            CU_ASSERT_EQUAL(json_next(&reader, &file), ERR_OK);
        } else if (json_event_is(&event, "tokens")) {
            CU_ASSERT_EQUAL(json_next(&reader, &value), ERR_OK);
            CU_ASSERT(json_number_i64(value.text, value.bytes, &tokens));
        } else if (json_event_is(&event, "sha256_le_u32")) {
            CU_ASSERT_EQUAL(json_next(&reader, &value), ERR_OK);
            bool is_equal =
                corpus_is_equal(&from_json, file.text, file.bytes, tokens, value.text, &seconds, &total_bytes);
            if (!is_equal) {
                (void)fprintf(stderr, "differs: %.*s\n", (int)file.bytes, file.text);
            }
            CU_ASSERT(is_equal);
            case_count++;
        }
    }
    CU_ASSERT_EQUAL(case_count, 53);
    (void)printf("tokenizer: %.1f MB of corpora at %.1f MB/s\n", (double)total_bytes / 1e6,
                 (double)total_bytes / 1e6 / seconds);
}

static void long_words_take_no_more_than_a_second(void)
{
    static const struct {
        const char *piece;
        int count;
    } cases[] = {
        {"a", 1000000},              /* one word of one letter */
        {"\xcc\x81", 65536},         /* combining marks of one class */
        {"\xcc\x81\xcc\xa7", 65536}, /* of two, each pair to be exchanged */
        {" ", 1000000},
        {"\n ", 500000},
        {"\xe4\xb8\xad", 300000},
        {"!?", 500000},
        {"\xf0\x9f\x98\x80", 250000},
        {"thequickbrownfox", 60000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes = 0;
        from_json.text[bytes++] = 'e';
        for (int k = 0; k < cases[i].count; k++) {
            memcpy(from_json.text + bytes, cases[i].piece, strlen(cases[i].piece));
            bytes += strlen(cases[i].piece);
        }
        double begin = seconds_now();
        (void)encode(&from_json, from_json.text, bytes, true);
        double seconds = seconds_now() - begin;
        (void)printf("tokenizer: case %zu: %zu bytes in %.3f s\n", i, bytes, seconds);
        CU_ASSERT(seconds < SECONDS_MAX);
    }
    long length = harness_read("tests/data/text/utf8_all_assigned_printable.txt", from_json.text, TEST_TEXT_BYTES_MAX);
    CU_ASSERT_FATAL(length > 800000);
    double begin = seconds_now();
    (void)encode(&from_json, from_json.text, (size_t)length, true);
    CU_ASSERT(seconds_now() - begin < SECONDS_MAX);
}

static void too_many_ids_are_counted_to_the_end(void)
{
    static const char text[] = "one two three four five";
    size_t count = 0;
    size_t whole = encode(&from_json, text, sizeof text - 1, false);
    CU_ASSERT_EQUAL(whole, 5);
    int32_t ids[3] = {0, 0, 77};
    CU_ASSERT_EQUAL(tokenizer_encode(&from_json.tokenizer, text, sizeof text - 1, NULL, 0, ids, 2, from_json.scratch,
                                     from_json.scratch_bytes, &count),
                    ERR_CONTEXT_EXCEEDED);
    CU_ASSERT_EQUAL(count, 5);
    CU_ASSERT_EQUAL(memcmp(ids, from_json.ids, 2 * sizeof ids[0]), 0);
    CU_ASSERT_EQUAL(ids[2], 77);
}

static void a_text_beyond_the_scratch_is_refused(void)
{
    static const char grows[] = "\xf0\x9d\x85\xa0\xf0\x9d\x85\xa0"; /* its NFC is three times as long */
    size_t count;
    size_t scratch_bytes = tokenizer_scratch_bytes(8);
    int32_t ids[64];
    const struct tokenizer *tokenizer = &from_json.tokenizer;

    CU_ASSERT_EQUAL(
        tokenizer_encode(tokenizer, "12345678", 8, NULL, 0, ids, 64, from_json.scratch, scratch_bytes, &count), ERR_OK);
    CU_ASSERT_EQUAL(
        tokenizer_encode(tokenizer, "123456789", 9, NULL, 0, ids, 64, from_json.scratch, scratch_bytes, &count),
        ERR_TOO_DEEP);
    CU_ASSERT_EQUAL(tokenizer_encode(tokenizer, grows, 8, NULL, 0, ids, 64, from_json.scratch, scratch_bytes, &count),
                    ERR_TOO_DEEP);
    CU_ASSERT_EQUAL(tokenizer_encode(tokenizer, "\xff", 1, NULL, 0, ids, 64, from_json.scratch, scratch_bytes, &count),
                    ERR_BAD_FIELD);
    for (size_t bytes = 0; bytes < 300; bytes++) {
        char *text = harness_memory(bytes + 1);
        memset(text, 'x', bytes);
        CU_ASSERT_EQUAL(tokenizer_encode(tokenizer, text, bytes, NULL, 0, from_json.ids, 512,
                                         harness_memory((tokenizer_scratch_bytes(bytes) + 63) / 64 * 64),
                                         tokenizer_scratch_bytes(bytes), &count),
                        ERR_OK);
    }
}

static void ranges_bound_what_matches(void)
{
    static const char text[] = "<|im_end|><|im_end|><|im_end|>";
    const struct text_range ranges[] = {{0, 9}, {10, 20}, {21, 30}};
    size_t count;
    int32_t end = tokenizer_find(&from_json.tokenizer, "<|im_end|>");
    CU_ASSERT_EQUAL(end, 151645);
    CU_ASSERT_EQUAL(tokenizer_encode(&from_json.tokenizer, text, sizeof text - 1, ranges, 3, from_json.ids, 64,
                                     from_json.scratch, from_json.scratch_bytes, &count),
                    ERR_OK);
    int matched = 0;
    for (size_t i = 0; i < count; i++) {
        matched += from_json.ids[i] == end;
    }
    CU_ASSERT_EQUAL(matched, 1);
}

static void ids_give_their_bytes_and_others_nothing(void)
{
    static const int32_t beyond[] = {-1, 151665, 151935, 151936, INT32_MAX, INT32_MIN};
    size_t bytes;
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        (void)tokenizer_token(&from_json.tokenizer, beyond[i], &bytes);
        CU_ASSERT_EQUAL(bytes, 0);
        CU_ASSERT_FALSE(tokenizer_is_special(&from_json.tokenizer, beyond[i]));
    }
    const char *text = tokenizer_token(&from_json.tokenizer, 151645, &bytes);
    CU_ASSERT(bytes == 10 && memcmp(text, "<|im_end|>", 10) == 0);
    CU_ASSERT(tokenizer_is_special(&from_json.tokenizer, 151645));
    CU_ASSERT_FALSE(tokenizer_is_special(&from_json.tokenizer, 151657)); /* <tool_call> */
    CU_ASSERT_EQUAL(tokenizer_find(&from_json.tokenizer, "no such token"), VOCAB_NONE);
}

static void all_forms_of_the_files_give_equal_tables(void)
{
    for (int32_t id = 0; id < QWEN2_VOCAB; id++) {
        size_t a_bytes;
        size_t b_bytes;
        const char *a = tokenizer_token(&from_json.tokenizer, id, &a_bytes);
        const char *b = tokenizer_token(&from_parts.tokenizer, id, &b_bytes);
        if (a_bytes != b_bytes || memcmp(a, b, a_bytes) != 0 ||
            vocab_flags(&from_json.tokenizer.vocab, id) != vocab_flags(&from_parts.tokenizer.vocab, id)) {
            CU_FAIL("tables differ");
            break;
        }
    }
    CU_ASSERT_EQUAL(from_json.tokenizer.vocab.merge_count, from_parts.tokenizer.vocab.merge_count);
}

static void open_all(void)
{
    double begin = seconds_now();
    CU_ASSERT(open_folder(&from_json, QWEN2_VOCAB, qwen2, false, NULL));
    (void)printf("tokenizer: opened in %.3f s, %zu bytes\n", seconds_now() - begin, tokenizer_bytes(QWEN2_VOCAB));
    CU_ASSERT(open_folder(&from_parts, QWEN2_VOCAB, qwen2, true, qwen2_config));
    CU_ASSERT(open_folder(&qwen3, QWEN2_VOCAB, qwen2, true, qwen3_config));
    CU_ASSERT(open_folder(&small_json, SMALL_VOCAB, small, false, NULL));
    CU_ASSERT(open_folder(&small_parts, SMALL_VOCAB, small, true, small));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(open_all),
        CASE(plain_strings_have_the_reference_ids),
        CASE(added_tokens_are_matched_only_where_they_may_be),
        CASE(the_vectors_of_llama_cpp_hold),
        CASE(whole_corpora_have_the_reference_ids),
        CASE(long_words_take_no_more_than_a_second),
        CASE(too_many_ids_are_counted_to_the_end),
        CASE(a_text_beyond_the_scratch_is_refused),
        CASE(ranges_bound_what_matches),
        CASE(ids_give_their_bytes_and_others_nothing),
        CASE(all_forms_of_the_files_give_equal_tables),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "text/tokenizer", cases, NULL);
}
