/* test_chat_content: messages keep their order and their texts; pictures are sized from their headers; what cannot be
 * taken is refused with the path of the part. */
#include "tests/http/parse_chat.h"

static void strings_lists_and_nulls_are_contents(void)
{
    CU_ASSERT(
        parse_messages(
            "[{\"content\":\"be \\\"brief\\\"\",\"role\":\"SYSTEM\"},{\"role\":\"developer\",\"content\":\"x\"},"
            "{\"role\":\"user\",\"content\":[{\"text\":\"a\",\"type\":\"text\"},{\"type\":\"text\",\"text\":\"\"}]},"
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[ {\"f\":\"\\u0041\"}]},"
            "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[ ]},"
            "{\"role\":\"tool\",\"content\":\"42\",\"tool_call_id\":\"1\"},{\"role\":\"function\",\"content\":\"f\"},"
            "{\"role\":\"assistant\"},{\"role\":\"user\",\"content\":[]}]") == ERR_OK);
    const struct chat_message *m = parse.chat.messages;
    CU_ASSERT_FATAL(parse.chat.message_count == 9);
    CU_ASSERT(span_is(m[0].role, "system") && m[0].content == CHAT_STRING_CONTENT && m[0].part_count == 1);
    CU_ASSERT(span_is(m[0].parts[0].text, "be \"brief\""));
    CU_ASSERT(span_is(m[1].role, "system")); /* a developer speaks for the system */
    CU_ASSERT(m[2].content == CHAT_LIST_CONTENT && m[2].part_count == 2 && span_is(m[2].parts[0].text, "a"));
    CU_ASSERT(m[3].content == CHAT_NO_CONTENT && span_is(m[3].tool_calls, "[ {\"f\":\"\\u0041\"}]"));
    CU_ASSERT(m[4].tool_calls.length == 0 && m[4].part_count == 1);
    CU_ASSERT(span_is(m[5].role, "tool") && span_is(m[6].role, "tool"));
    CU_ASSERT(m[7].content == CHAT_NO_CONTENT && m[8].content == CHAT_LIST_CONTENT && m[8].part_count == 0);
}

static void content_given_twice_counts_once(void)
{
    CU_ASSERT(parse_messages(
                  "[{\"role\":\"user\",\"content\":\"first\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                  "\"text\":\"x\"},{\"type\":\"text\",\"text\":\"y\"}],\"content\":\"z\",\"role\":\"assistant\"}]") ==
              ERR_OK);
    CU_ASSERT(parse.part_count == 2 && span_is(parse.chat.messages[1].parts[0].text, "z"));
    CU_ASSERT(span_is(parse.chat.messages[1].role, "assistant"));
}

static void wrong_messages_are_refused_with_their_path(void)
{
    static const struct {
        const char *messages, *param;
        enum err err;
    } rows[] = {
        {"[]", "messages", ERR_BAD_FIELD},
        {"[5]", "messages[0]", ERR_BAD_FIELD},
        {"[{}]", "messages[0].role", ERR_BAD_FIELD},
        {"[{\"role\":5,\"content\":\"x\"}]", "messages[0].role", ERR_BAD_FIELD},
        {"[{\"role\":\"critic\",\"content\":\"x\"}]", "messages[0].role", ERR_BAD_FIELD},
        {"[{\"role\":\"\",\"content\":\"x\"}]", "messages[0].role", ERR_BAD_FIELD},
        {"[{\"role\":\"user\"}]", "messages[0].content", ERR_BAD_FIELD},
        {"[{\"role\":\"user\",\"content\":null}]", "messages[0].content", ERR_BAD_FIELD},
        {"[{\"role\":\"user\",\"content\":5}]", "messages[0].content", ERR_BAD_FIELD},
        {"[{\"role\":\"user\",\"content\":{}}]", "messages[0].content", ERR_BAD_FIELD},
        {"[{\"role\":\"user\",\"content\":[\"x\"]}]", "messages[0].content[0]", ERR_BAD_FIELD},
        {"[{\"role\":\"user\",\"content\":[{}]}]", "messages[0].content[0].type", ERR_BAD_FIELD},
        {"[{\"role\":\"user\",\"content\":[{\"type\":5}]}]", "messages[0].content[0].type", ERR_BAD_FIELD},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\"}]}]", "messages[0].content[0].type",
         ERR_BAD_FIELD},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", "messages[0].content[0].text", ERR_BAD_FIELD},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":5}]}]", "messages[0].content[0].text",
         ERR_BAD_FIELD},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"video_url\"}]}]", "messages[0].content[0].type",
         ERR_UNSUPPORTED},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\"}]}]", "messages[0].content[0].type",
         ERR_UNSUPPORTED},
        {"[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":5}]", "messages[0].tool_calls", ERR_BAD_FIELD},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum err err = parse_messages(rows[i].messages);
        if (err != rows[i].err || strcmp(parsed.err_param, rows[i].param) != 0) {
            (void)fprintf(stderr, "%s: %d %s\n", rows[i].messages, (int)err, parsed.err_param);
        }
        CU_ASSERT(err == rows[i].err);
        CU_ASSERT_STRING_EQUAL(parsed.err_param, rows[i].param);
    }
}

static void wrong_picture_urls_are_refused_with_their_path(void)
{
    static const struct {
        const char *part;
        enum err err;
    } rows[] = {
        {"{}", ERR_BAD_FIELD},
        {"null", ERR_BAD_FIELD},
        {"5", ERR_BAD_FIELD},
        {"{\"url\":\"\"}", ERR_BAD_FIELD},
        {"{\"url\":null}", ERR_BAD_FIELD},
        {"{\"url\":5}", ERR_BAD_FIELD},
        {"\"\"", ERR_BAD_FIELD},
        {"{\"url\":\"http://127.0.0.1/x.png\"}", ERR_UNSUPPORTED},
        {"{\"url\":\"file:///etc/passwd\"}", ERR_UNSUPPORTED},
        {"{\"url\":\"data:image/png;base64,!!\"}", ERR_BAD_IMAGE},
        {"{\"url\":\"data:image/png;base64,\"}", ERR_BAD_IMAGE},
        {"{\"url\":\"data:image/png;base64,AAAA\"}", ERR_BAD_IMAGE},
        {"{\"url\":\"data:,x\"}", ERR_BAD_IMAGE},
    };
    char messages[512];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(messages, sizeof messages,
                       "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\"},{\"type\":"
                       "\"image_url\",\"image_url\":%s}]}]",
                       rows[i].part);
        enum err err = parse_messages(messages);
        if (err != rows[i].err) {
            (void)fprintf(stderr, "%s: %d %s\n", rows[i].part, (int)err, parsed.err_detail);
        }
        CU_ASSERT(err == rows[i].err);
        CU_ASSERT(strncmp(parsed.err_param, "messages[0].content[1].image_url", 32) == 0);
    }
}

/* A data URL of a fixture into `out`. */
static void write_url(const char *path, char *out, size_t capacity)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static unsigned char file[65536];
    long bytes = harness_read(path, file, sizeof file);
    int length = snprintf(out, capacity, "data:;base64,");

    CU_ASSERT_FATAL(bytes > 0);
    for (long i = 0; i < bytes; i += 3) {
        uint32_t word = (uint32_t)file[i] << 16 | (i + 1 < bytes ? (uint32_t)file[i + 1] << 8 : 0) |
                        (i + 2 < bytes ? (uint32_t)file[i + 2] : 0);
        for (int digit = 0; digit < 4; digit++) {
            out[length++] = i + digit > bytes ? '=' : digits[word >> (18 - 6 * digit) & 63];
        }
    }
    out[length] = '\0';
}

static void pictures_are_sized_from_their_headers(void)
{
    static char url[2][65536], messages[200000];

    write_url("tests/data/fixtures/images/photo100x75.png", url[0], sizeof url[0]);
    write_url("tests/data/fixtures/images/exif6_160x240.jpg", url[1], sizeof url[1]);
    (void)snprintf(
        messages, sizeof messages,
        "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"detail\":\"x\",\"url\":\"%s\"}},{"
        "\"type\":"
        "\"text\",\"text\":\"and\"}]},{\"role\":\"user\",\"content\":[{\"image_url\":\"%s\",\"type\":\"image_url\"}]}]",
        url[0], url[1]);
    CU_ASSERT_FATAL(parse_messages(messages) == ERR_OK);
    CU_ASSERT_FATAL(parsed.picture_count == 2);
    const struct picture *p = parsed.pictures;
    CU_ASSERT(p[0].width == 100 && p[0].height == 75 && p[0].grid_w == 8 && p[0].grid_h == 6 && p[0].token_count == 12);
    CU_ASSERT(p[0].message_index == 0 && p[0].part_index == 0 && p[1].message_index == 1 && p[1].part_index == 0);
    CU_ASSERT(p[1].width == 160 && p[1].height == 240); /* upright */
    CU_ASSERT(memcmp(p[0].digest, p[1].digest, sizeof p[0].digest) != 0);
    CU_ASSERT(p[0].file[1] == 'P' && p[1].file[0] == 0xff);
    CU_ASSERT(parse.chat.messages[0].parts[0].kind == CHAT_PICTURE && parse.chat.messages[1].part_count == 1);

    parse_rules.has_pictures = false;
    CU_ASSERT(parse_messages(messages) == ERR_UNSUPPORTED);
    parse_rules.has_pictures = true;
    parse_rules.images_max = 1;
    CU_ASSERT(parse_messages(messages) == ERR_TOO_MANY_IMAGES);
    CU_ASSERT_STRING_EQUAL(parsed.err_detail, "2 images, at most 1 a request");
    parse_rules.images_max = 3;
    parse_rules.max_source_pixels = 100 * 75 - 1;
    CU_ASSERT(parse_messages(messages) == ERR_BAD_IMAGE);
    parse_rules.max_source_pixels = 1000000;
}

static void messages_and_parts_are_bounded(void)
{
    static char messages[PARSE_BODY_MAX];

    for (int count = MESSAGES_MAX; count <= MESSAGES_MAX + 1; count++) {
        size_t length = 0;
        for (int i = 0; i < count; i++) {
            length +=
                (size_t)snprintf(messages + length, 128, "%c{\"role\":\"user\",\"content\":\"x\"}", i == 0 ? '[' : ',');
        }
        (void)snprintf(messages + length, 2, "]");
        CU_ASSERT(parse_messages(messages) == (count <= MESSAGES_MAX ? ERR_OK : ERR_BAD_FIELD));
    }
    for (int count = PARTS_MAX; count <= PARTS_MAX + 1; count++) {
        size_t length = (size_t)snprintf(messages, 128, "[{\"role\":\"user\",\"content\":");
        for (int i = 0; i < count; i++) {
            length +=
                (size_t)snprintf(messages + length, 128, "%c{\"type\":\"text\",\"text\":\"x\"}", i == 0 ? '[' : ',');
        }
        (void)snprintf(messages + length, 8, "]}]");
        CU_ASSERT(parse_messages(messages) == (count <= PARTS_MAX ? ERR_OK : ERR_BAD_FIELD));
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(strings_lists_and_nulls_are_contents),
        CASE(content_given_twice_counts_once),
        CASE(wrong_messages_are_refused_with_their_path),
        CASE(wrong_picture_urls_are_refused_with_their_path),
        CASE(pictures_are_sized_from_their_headers),
        CASE(messages_and_parts_are_bounded),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "http/chat_content", cases, NULL);
}
