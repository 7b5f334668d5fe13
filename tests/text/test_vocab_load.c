/* test_vocab_load: files of another tokenizer are refused by name, place and value; broken ones never crash. */
#include "engine/text/vocab_load.h"

#include "tests/text/open_tokenizer.h"

static const char small[] = "tests/data/fixtures/tokenizer-small";
static char detail[ERROR_DETAIL_BYTES_MAX];

enum { SMALL_VOCAB = 1088 };

static bool load(const struct tokenizer_files *files, uint32_t vocab_size)
{
    static struct vocab vocab;
    size_t bytes = vocab_memory_bytes(vocab_size);
    vocab_open(&vocab, vocab_size, harness_memory(bytes), bytes);
    detail[0] = '\0';
    return vocab_load(&vocab, files, detail);
}

/* Replaces the first `from` in a file by `to`. */
static void edit(struct tokenizer_file *file, const char *from, const char *to)
{
    char *place = strstr(file->bytes, from);
    size_t from_bytes = strlen(from);
    size_t to_bytes = strlen(to);
    CU_ASSERT_PTR_NOT_NULL_FATAL(place);
    memmove(place + to_bytes, place + from_bytes, file->length - (size_t)(place - file->bytes) - from_bytes);
    memcpy(place, to, to_bytes);
    file->length = file->length - from_bytes + to_bytes;
}

static void another_pipeline_is_refused_by_its_row(void)
{
    static const struct {
        const char *from, *to, *named;
    } cases[] = {
        {"\"NFC\"", "\"NFKC\"", "normalizer.type is not supported: NFKC"},
        {"(?i:'s", "(?:'s", "pretokenizers.0.pattern.Regex"},
        {"\"Isolated\"", "\"Removed\"", "pretokenizers.0.behavior"},
        {"\"add_prefix_space\": false", "\"add_prefix_space\": true", "pretokenizers.1.add_prefix_space"},
        {"\"dropout\": null", "\"dropout\": 0.1", "model.dropout is not supported: 0.1"},
        {"\"byte_fallback\": false", "\"byte_fallback\": true", "model.byte_fallback"},
        {"\"BPE\"", "\"Unigram\"", "model.type"},
        {"\"decoder\"", "\"decodes\"", "no value at: decoder.type"},
        {"\"single_word\": false", "\"single_word\": true",
         "an added token with an option that is not known: single_word"},
        {"\"id\": 1024", "\"id\": 1088", "id beyond the model's vocab_size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokenizer_files files = {.tokenizer_json = read_tokenizer_file(small, "tokenizer.json")};
        edit(&files.tokenizer_json, cases[i].from, cases[i].to);
        CU_ASSERT_FALSE(load(&files, SMALL_VOCAB));
        if (strstr(detail, cases[i].named) == NULL) {
            (void)fprintf(stderr, "%s: %s\n", cases[i].named, detail);
        }
        CU_ASSERT_PTR_NOT_NULL(strstr(detail, cases[i].named));
        CU_ASSERT_EQUAL(strncmp(detail, "tokenizer.json: ", 16), 0);
    }
}

static void broken_parts_are_refused(void)
{
    static const struct {
        const char *file, *from, *to, *named;
    } cases[] = {
        {"merges.txt", "h e\n", "h eeeeeee\n", "merges.txt: a merge of a token that is not in the vocabulary"},
        {"merges.txt", "h e\n", "he\n", "merges.txt: not a merge: he"},
        {"vocab.json", "\"!\"", "\"! \"", "vocab.json: not a byte-level token"},
        {"vocab.json", "\"\xc4\x80\"", "\"\xc4\x80\xc4\x80\"", "no token for the byte: 00"},
        {"tokenizer_config.json", "\"Qwen2Tokenizer\"", "\"LlamaTokenizer\"", "tokenizer_class"},
        {"tokenizer_config.json", "\"add_prefix_space\": false", "\"add_prefix_space\": true", "add_prefix_space"},
        {"added_tokens.json", "1024", "1.5", "added_tokens.json: byte"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tokenizer_files files = {
            .vocab_json = read_tokenizer_file(small, "vocab.json"),
            .merges_txt = read_tokenizer_file(small, "merges.txt"),
            .tokenizer_config_json = read_tokenizer_file(small, "tokenizer_config.json"),
            .added_tokens_json = read_tokenizer_file(small, "added_tokens.json"),
        };
        struct tokenizer_file *file = cases[i].file[0] == 'm'   ? &files.merges_txt
                                      : cases[i].file[0] == 'v' ? &files.vocab_json
                                      : cases[i].file[0] == 't' ? &files.tokenizer_config_json
                                                                : &files.added_tokens_json;
        edit(file, cases[i].from, cases[i].to);
        CU_ASSERT_FALSE(load(&files, SMALL_VOCAB));
        if (strstr(detail, cases[i].named) == NULL) {
            (void)fprintf(stderr, "%s: %s\n", cases[i].named, detail);
        }
        CU_ASSERT_PTR_NOT_NULL(strstr(detail, cases[i].named));
    }
}

static void a_first_line_with_the_version_may_be_there(void)
{
    struct tokenizer_files files = {.vocab_json = read_tokenizer_file(small, "vocab.json"),
                                    .merges_txt = read_tokenizer_file(small, "merges.txt")};
    CU_ASSERT(load(&files, SMALL_VOCAB));
    files.vocab_json = read_tokenizer_file(small, "vocab.json");
    files.merges_txt = read_tokenizer_file(small, "merges.txt");
    edit(&files.merges_txt, "#version: 0.2\n", "");
    CU_ASSERT(load(&files, SMALL_VOCAB));
}

static void a_file_cut_anywhere_is_refused(void)
{
    struct tokenizer_file whole = read_tokenizer_file(small, "tokenizer.json");
    char *copy = harness_memory(whole.length);
    for (size_t cut = 0; cut + 2 < whole.length; cut += 1 + cut / 64) {
        memcpy(copy, whole.bytes, whole.length);
        struct tokenizer_files files = {.tokenizer_json = {copy, cut}};
        CU_ASSERT_FALSE(load(&files, SMALL_VOCAB));
        CU_ASSERT(strncmp(detail, "tokenizer.json: ", 16) == 0);
    }
}

static void absent_files_are_named(void)
{
    struct tokenizer_files files = {.vocab_json = read_tokenizer_file(small, "vocab.json")};
    CU_ASSERT_FALSE(load(&files, SMALL_VOCAB));
    CU_ASSERT_PTR_NOT_NULL(strstr(detail, "merges.txt"));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(another_pipeline_is_refused_by_its_row),
        CASE(broken_parts_are_refused),
        CASE(a_first_line_with_the_version_may_be_there),
        CASE(a_file_cut_anywhere_is_refused),
        CASE(absent_files_are_named),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "text/vocab_load", cases, NULL);
}
