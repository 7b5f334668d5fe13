/* fuzz_tokenizer: ids are in range, and of a text that NFC leaves alone their bytes are the text. */
#include "engine/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

enum { VOCAB = 1088, TEXT_BYTES_MAX = 4096, IDS_MAX = TEXT_BYTES_MAX * 4 };

static struct tokenizer tokenizer;
static void *scratch;

static void open_once(void)
{
    static char detail[ERROR_DETAIL_BYTES_MAX];
    struct tokenizer_files files = {.tokenizer_json = {NULL, 0}};

    if (scratch == NULL) {
        files.tokenizer_json.bytes =
            fuzz_read("tests/data/fixtures/tokenizer-small/tokenizer.json", &files.tokenizer_json.length);
        size_t bytes = tokenizer_bytes(VOCAB);
        fuzz_demand(tokenizer_open(&tokenizer, VOCAB, &files, fuzz_room(bytes), bytes, detail), detail);
        scratch = fuzz_room(tokenizer_scratch_bytes(TEXT_BYTES_MAX));
    }
}

static void check_bytes(const char *text, size_t bytes, const int32_t *ids, size_t count)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        const char *token = tokenizer_token(&tokenizer, ids[i], &length);
        fuzz_demand(at + length <= bytes && memcmp(text + at, token, length) == 0, "tokens spell the text");
        at += length;
    }
    fuzz_demand(at == bytes, "tokens spell all of the text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int32_t ids[IDS_MAX];
    size_t count = 0, again = 0;
    bool is_ascii = true;

    if (bytes > TEXT_BYTES_MAX) {
        return 0;
    }
    open_once();
    char *text = fuzz_copy(data, bytes);
    struct text_range all = {0, bytes};
    enum err err = tokenizer_encode(&tokenizer, text, bytes, &all, bytes % 2, ids, IDS_MAX, scratch,
                                    tokenizer_scratch_bytes(TEXT_BYTES_MAX), &count);
    for (size_t i = 0; i < bytes; i++) {
        is_ascii = is_ascii && data[i] < 0x80;
    }
    fuzz_demand(err == ERR_OK || err == ERR_BAD_FIELD || err == ERR_TOO_DEEP, "the error is a documented one");
    fuzz_demand(!is_ascii || err == ERR_OK, "ASCII is always taken");
    if (err == ERR_OK) {
        for (size_t i = 0; i < count; i++) {
            fuzz_demand(ids[i] >= 0 && ids[i] < VOCAB, "ids are in range");
        }
        if (is_ascii) {
            check_bytes(text, bytes, ids, count);
        }
        err = tokenizer_encode(&tokenizer, text, bytes, &all, bytes % 2, ids, count / 2, scratch,
                               tokenizer_scratch_bytes(TEXT_BYTES_MAX), &again);
        fuzz_demand(count == 0 || (err == ERR_CONTEXT_EXCEEDED && again == count), "too many ids are counted");
    }
    free(text);
    return 0;
}
