/* test_chat_answer: an answer is the same streamed or whole, whoever reads it and however slowly. */
#include "tests/http/serve.h"

static void a_whole_answer_has_the_documented_shape(void)
{
    struct client client = client_open();

    (void)post(&client, chat_body("Hello \\\"world\\\" \\u00e4\\n", ""));
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200);
    CU_ASSERT(has(&answer, "\"object\":\"chat.completion\""));
    CU_ASSERT(has(&answer, "\"model\":\"echo\""));
    CU_ASSERT(has(&answer,
                  "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hello "
                  "\\\"world\\\" \xc3\xa4\\n\",\"reasoning_content\":null,\"tool_calls\":null},\"logprobs\":null,"
                  "\"finish_reason\":\"stop\",\"matched_stop\":7}],\"usage\":{\"prompt_tokens\":3,"));
    CU_ASSERT(has(&answer, "\"prompt_tokens_details\":{\"cached_tokens\":2}}"));
    answer_free(&answer);
    (void)post(&client, chat_body("until x", ",\"stop\":[\"a\\\"b\"],\"max_tokens\":2"));
    answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200);
    answer_free(&answer);
    client_close(&client);
}

static void a_stream_is_role_text_finish_usage_done(void)
{
    struct client client = client_open();

    (void)post(&client, chat_body("Hi there", ",\"stream\":true,\"stream_options\":{\"include_usage\":true}"));
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200);
    CU_ASSERT_STRING_EQUAL(answer_field(&answer, "content-type"), "text/event-stream; charset=utf-8");
    const char *at = answer.body;
    static const char *const order[] = {
        "\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":null}",
        "\"delta\":{\"content\":\"",
        "\"delta\":{\"reasoning_content\":null},\"logprobs\":null,\"finish_reason\":\"stop\",\"matched_stop\":7",
        "\"choices\":[],\"usage\":{",
        "data: [DONE]\n\n",
    };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        at = at == NULL ? NULL : strstr(at, order[i]);
        CU_ASSERT_PTR_NOT_NULL(at);
    }
    CU_ASSERT(at != NULL && at[sizeof "data: [DONE]\n\n" - 1] == '\0');
    answer_free(&answer);
    CU_ASSERT(post(&client, chat_body("again", "")) && client_status(&client) == 200); /* the same socket */
    client_close(&client);
}

static void a_stream_joined_equals_the_whole_answer(void)
{
    static const char *const texts[] = {
        "plain",
        "\\u0000\\u0001\\\\\\\"/",
        "\xf0\x9f\x98\x80 \xe4\xb8\xad\xe6\x96\x87 \xc3\xa9",
        "forever ab\\n",
        "forever \xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9",
    };
    static char whole[65536], joined[65536];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (int limit = 1; limit < 600; limit = limit * 3 + 1) {
            struct client client = client_open();
            char fields[64];
            (void)snprintf(fields, sizeof fields, ",\"max_tokens\":%d", limit);
            (void)post(&client, chat_body(texts[i], fields));
            struct answer answer = client_answer(&client, true);
            CU_ASSERT_FATAL(answer.status == 200);
            join_content(answer.body, whole);
            answer_free(&answer);
            (void)snprintf(fields, sizeof fields, ",\"max_tokens\":%d,\"stream\":true", limit);
            (void)post(&client, chat_body(texts[i], fields));
            answer = client_answer(&client, true);
            CU_ASSERT_FATAL(answer.status == 200);
            join_content(answer.body, joined);
            CU_ASSERT_STRING_EQUAL(whole, joined);
            answer_free(&answer);
            client_close(&client);
        }
    }
}

static void http_1_0_gets_plain_bodies(void)
{
    struct client client = client_open();
    static char request[40000];
    const char *body = chat_body("old", ",\"stream\":true");

    (void)snprintf(
        request, sizeof request,
        "POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        strlen(body), body);
    (void)client_say(&client, request);
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200 && answer_field(&answer, "transfer-encoding") == NULL);
    CU_ASSERT(strncmp(answer.body, "data: {", 7) == 0 && has(&answer, "data: [DONE]\n\n"));
    answer_free(&answer);
    client_close(&client);
}

static void refusals_have_a_status_even_when_streamed(void)
{
    struct client client = client_open();

    for (int i = 0; i < 2; i++) {
        const char *fields = i == 0 ? "" : ",\"stream\":true";
        (void)post(&client, chat_body("deny x", fields));
        struct answer answer = client_answer(&client, true);
        CU_ASSERT(answer.status == 400);
        CU_ASSERT(has(&answer, "is longer than the model's context length: 9999 tokens, the context is 2048"));
        CU_ASSERT(has(&answer, "\"param\":\"messages\""));
        answer_free(&answer);
        (void)post(&client, "{\"messages\":[}");
        CU_ASSERT(client_status(&client) == 400);
    }
    (void)post(&client, chat_body("fail one two three four five", ""));
    CU_ASSERT(client_status(&client) == 500);
    (void)post(&client, chat_body("fail one two three four five", ",\"stream\":true"));
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200);
    CU_ASSERT(has(&answer, "data: {\"object\":\"error\"") && has(&answer, "data: [DONE]\n\n"));
    answer_free(&answer);
    client_close(&client);
}

static void slow_readers_lose_nothing_and_hold_up_nobody(void)
{
    struct client client = client_open();
    int small = 16384;
    static char joined[65536], whole[65536];

    (void)setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    const char *body = chat_body("forever 0123456789", ",\"stream\":true,\"max_tokens\":1000");
    (void)post(&client, body);
    (void)usleep(300000);
    CU_ASSERT(get_status("/health") == 200);
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200);
    join_content(answer.body, joined);
    CU_ASSERT(has(&answer, "data: [DONE]\n\n"));
    answer_free(&answer);
    client_close(&client);
    client = client_open(); /* the first one's idle time has passed while its last bytes lay in the kernel */
    (void)setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    (void)post(&client, chat_body("forever 0123456789", ",\"max_tokens\":1000"));
    (void)usleep(200000);
    answer = client_answer(&client, true);
    join_content(answer.body, whole);
    CU_ASSERT(answer.status == 200 && strlen(whole) > 500);
    CU_ASSERT_STRING_EQUAL(joined, whole);
    answer_free(&answer);
    client_close(&client);
}

static void pictures_are_taken_from_data_urls(void)
{
    static unsigned char file[65536];
    static char body[120000];
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    long bytes = harness_read("tests/data/fixtures/images/photo100x75.png", file, sizeof file);
    CU_ASSERT_FATAL(bytes > 0 && bytes < 65536);
    int length = snprintf(body, sizeof body,
                          "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":"
                          "{\"url\":\"data:image/png;base64,");
    for (long i = 0; i < bytes; i += 3) {
        uint32_t word = (uint32_t)file[i] << 16 | (i + 1 < bytes ? (uint32_t)file[i + 1] << 8 : 0) |
                        (i + 2 < bytes ? (uint32_t)file[i + 2] : 0);
        for (int digit = 0; digit < 4; digit++) {
            body[length++] = i + digit > bytes ? '=' : digits[word >> (18 - 6 * digit) & 63];
        }
    }
    (void)snprintf(body + length, sizeof body - (size_t)length, "\"}},{\"type\":\"text\",\"text\":\"what?\"}]}]}");
    struct client client = client_open();
    (void)post(&client, body);
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200);
    CU_ASSERT(has(&answer, "\"image_tokens\":12}"));
    answer_free(&answer);
    (void)post(&client, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":"
                        "\"http://127.0.0.1/a.png\"}}]}]}");
    answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 400 && has(&answer, "messages[0].content[0].image_url.url"));
    answer_free(&answer);
    client_close(&client);
}

static void choices_stand_in_order_and_count_together(void)
{
    struct client client = client_open();

    (void)post(&client, chat_body("a bb ccc dddd", ",\"n\":3"));
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200);
    const char *first =
        strstr(answer.body, "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    const char *second = strstr(answer.body, "\"matched_stop\":7},{\"index\":1,\"message\":{\"role\":\"assistant\"");
    const char *third = strstr(answer.body, "\"matched_stop\":7},{\"index\":2,\"message\":{\"role\":\"assistant\"");
    CU_ASSERT(first != NULL && first < second && second < third);
    CU_ASSERT(!has(&answer, "\"index\":3") && has(&answer, "\"matched_stop\":7}],\"usage\":{\"prompt_tokens\":3,"));
    const char *usage = strstr(answer.body, "\"completion_tokens\":");
    int together = usage != NULL ? atoi(usage + sizeof "\"completion_tokens\":" - 1) : 0;
    answer_free(&answer);
    (void)post(&client, chat_body("a bb ccc dddd", ""));
    answer = client_answer(&client, true);
    usage = strstr(answer.body, "\"completion_tokens\":");
    int alone = usage != NULL ? atoi(usage + sizeof "\"completion_tokens\":" - 1) : 0;
    CU_ASSERT(alone > 3 && together == 3 * alone - 3); /* choice i leaves i tokens out */
    answer_free(&answer);
    client_close(&client);
}

/* The content of choice `index` of a stream. */
static void join_choice(const char *body, int index, char *out)
{
    char mark[64];
    out[0] = '\0';
    (void)snprintf(mark, sizeof mark, "{\"index\":%d,\"delta\":{\"content\":\"", index);
    for (const char *at = body; (at = strstr(at, mark)) != NULL;) {
        at += strlen(mark);
        (void)strncat(out, at, strcspn(at, "\""));
    }
}

static uint32_t count_of(const char *body, const char *text)
{
    uint32_t count = 0;
    for (const char *at = body; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static void streamed_choices_come_in_turns_with_one_end(void)
{
    static char joined[3][65536];
    struct client client = client_open();

    (void)post(&client, chat_body("forever one two three four", ",\"n\":3,\"stream\":true,\"max_tokens\":200,"
                                                                "\"stream_options\":{\"include_usage\":true}"));
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200);
    for (int i = 0; i < 3; i++) {
        char mark[64];
        (void)snprintf(mark, sizeof mark, "{\"index\":%d,\"delta\":{\"role\":", i);
        CU_ASSERT_EQUAL(count_of(answer.body, mark), 1);
        join_choice(answer.body, i, joined[i]);
    }
    CU_ASSERT_EQUAL(count_of(answer.body, "\"finish_reason\":\"length\""), 3);
    CU_ASSERT_EQUAL(count_of(answer.body, "\"choices\":[],\"usage\":{"), 1);
    CU_ASSERT_EQUAL(count_of(answer.body, "data: [DONE]"), 1);
    CU_ASSERT(has(&answer, "\"completion_tokens\":600,\"total_tokens\":603"));
    CU_ASSERT(strlen(joined[0]) > 100 && strlen(joined[1]) > 100 && strlen(joined[2]) > 100);
    CU_ASSERT(strncmp(joined[0], joined[1], 3) != 0); /* each its own text */
    const char *last_of_first = strstr(answer.body, "{\"index\":0,\"delta\":{\"reasoning_content\"");
    const char *first_of_last = strstr(answer.body, "{\"index\":2,\"delta\":{\"content\"");
    CU_ASSERT(last_of_first != NULL && first_of_last != NULL && first_of_last < last_of_first);
    answer_free(&answer);
    client_close(&client);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_whole_answer_has_the_documented_shape),   CASE(a_stream_is_role_text_finish_usage_done),
        CASE(a_stream_joined_equals_the_whole_answer),   CASE(http_1_0_gets_plain_bodies),
        CASE(refusals_have_a_status_even_when_streamed), CASE(slow_readers_lose_nothing_and_hold_up_nobody),
        CASE(pictures_are_taken_from_data_urls),         CASE(choices_stand_in_order_and_count_together),
        CASE(streamed_choices_come_in_turns_with_one_end),
        {NULL, NULL},
    };
    return serve_cases(argc, argv, "http/chat_answer", cases);
}
