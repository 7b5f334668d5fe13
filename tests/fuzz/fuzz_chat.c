/* fuzz_chat: any conversation renders within its buffers or is refused; a client's text never becomes a template's.
 *
 * The input is cut at bytes 1 (a message's role) and 2 (a content part); byte 3 makes a part a picture, and what
 * follows byte 4 are tools.
 */
#include "engine/text/chat.h"
#include "tests/fuzz/fuzz.h"

enum { MESSAGES = 8, PARTS = 32, TEXT_BYTES = 64 * 1024, RANGES = 1024 };

static const char *const folders[] = {"tests/data/models/Qwen2.5-VL-7B-Instruct",
                                      "tests/data/models/Qwen2.5-7B-Instruct"};

static const struct chat_template *template_of(size_t index)
{
    static const struct chat_template *known[2];

    if (known[index] == NULL) {
        static char detail[ERROR_DETAIL_BYTES_MAX];
        char path[256];
        struct chat_files files = {.chat_template_json = {NULL, 0}};
        (void)snprintf(path, sizeof path, "%s/tokenizer_config.json", folders[index]);
        files.tokenizer_config_json.bytes = fuzz_read(path, &files.tokenizer_config_json.length);
        known[index] = chat_open(&files, detail);
        fuzz_demand(known[index] != NULL, detail);
    }
    return known[index];
}

static struct chat_request request;
static struct chat_message messages[MESSAGES];
static struct chat_part parts[PARTS];

static void cut(const char *text, size_t bytes)
{
    size_t part_count = 0;

    request = (struct chat_request){
        .messages = messages, .adds_generation_prompt = true, .parses_arguments = true, .joins_text_parts = true};
    for (size_t at = 0; at < bytes;) {
        char mark = text[at++];
        size_t end = at;
        while (end < bytes && (text[end] < 1 || text[end] > 4)) {
            end++;
        }
        struct json_span span = {text + at, end - at};
        struct chat_message *last = request.message_count > 0 ? &messages[request.message_count - 1] : NULL;
        if (mark == 1 && request.message_count < MESSAGES) {
            messages[request.message_count++] =
                (struct chat_message){.role = span, .content = CHAT_LIST_CONTENT, .parts = parts + part_count};
        } else if ((mark == 2 || mark == 3) && last != NULL && part_count < PARTS) {
            parts[part_count++] = (struct chat_part){.kind = mark == 3 ? CHAT_PICTURE : CHAT_TEXT, .text = span};
            last->part_count++;
        } else if (mark == 4) {
            request.tools = span;
        }
        at = end;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char text[TEXT_BYTES];
    static struct text_range ranges[RANGES];
    char *copy = fuzz_copy(data, bytes);

    cut(copy, bytes);
    for (size_t i = 0; i < 2; i++) {
        struct prompt prompt;
        struct chat_fault fault = {0, NULL};
        prompt_open(&prompt, text, bytes % 7 == 0 ? 100 : TEXT_BYTES, ranges, RANGES);
        enum err err = chat_render(template_of(i), &request, &prompt, &fault);
        fuzz_demand(prompt.length <= prompt.capacity && prompt.range_count <= RANGES, "the prompt fits");
        fuzz_demand(err != ERR_BAD_FIELD || fault.reason != NULL, "a refusal says why");
        for (size_t k = 0; err == ERR_OK && k < prompt.range_count; k++) {
            fuzz_demand(ranges[k].begin < ranges[k].end && ranges[k].end <= prompt.length, "ranges lie in the prompt");
            fuzz_demand(k == 0 || ranges[k - 1].end < ranges[k].begin, "ranges ascend and never touch");
        }
    }
    free(copy);
    return 0;
}
