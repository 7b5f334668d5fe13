/* test_http_server: the whole of http/ over loopback, with an engine that is a test double: what is answered to whom,
 * that nobody waits for others, and that every pool is home after each case. */
#include "engine/http/http_server.h"

#include "engine/log.h"
#include "engine/options.h"
#include "tests/http/client.h"
#include "tests/http/fake_engine.h"

#include <signal.h>

enum { CONNECTIONS = 24, LARGE_BYTES = 1024 * 1024 };

static struct http_server server;
static struct options options;
static pthread_t server_thread;
static _Atomic bool was_clean, is_over;

static void *serve(void *unused)
{
    (void)unused;
    was_clean = http_server_run(&server);
    is_over = true;
    return NULL;
}

static void start(void)
{
    static char *arguments[] = {"ashlar", "serve", "--model-path", "m", "--port", "0", "--header-timeout", "0.5",
                                "--body-timeout", "0.5", "--body-wait", "0.5", "--write-timeout", "1", "--keep-alive",
                                "0.8", "--large-body-bytes", "1048576", "--shutdown-grace", "0.5", "--enable-metrics",
                                "--enable-cache-report", NULL};
    struct options_error error;
    bool is_parsed = options_parse(&options, (int)(sizeof arguments / sizeof arguments[0]) - 1, arguments, NULL, &error);
    require(is_parsed);
    log_set_level(LOG_ERROR);
    http_server_bind(&server, &options);
    fake_open_pools(CONNECTIONS);
    fake_start();
    const struct http_facts facts = {
        .options = &options, .tokenizer = &fake.room.tokenizer, .model_name = "org/model", .tokenizer_path = "m",
        .model_type = "qwen2_5_vl", .architecture = "A", .context_tokens = FAKE_CONTEXT, .running_requests = 2,
        .queued_requests = 3, .has_pictures = true,
    };
    http_server_open(&server, &fake, &facts);
    pools_seal();
    client_port = http_server_port(&server);
    (void)pthread_create(&server_thread, NULL, serve, NULL);
    while (true) { /* until it listens */
        struct client client = client_open();
        bool is_open = client.fd >= 0;
        client_close(&client);
        if (is_open) {
            return;
        }
        (void)usleep(1000);
    }
}

static int all_home(void)
{
    for (int i = 0; i < 300; i++) {
        uint32_t used = 0;
        for (int pool = 0; pool < POOL_COUNT; pool++) {
            used += pools_used((enum pool)pool);
        }
        if (used == 0) {
            return 0;
        }
        (void)usleep(10000);
    }
    return 1;
}

/* --- requests ------------------------------------------------------------------------------------------------------ */

static size_t write_post(char *out, size_t capacity, const char *body, const char *more)
{
    return (size_t)snprintf(out, capacity,
                            "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n%s"
                            "Content-Length: %zu\r\n\r\n%s",
                            more, strlen(body), body);
}

static bool post(struct client *client, const char *body)
{
    static char request[2 * LARGE_BYTES];
    return client_send(client, request, write_post(request, sizeof request, body, ""));
}

static const char *chat_body(const char *text, const char *fields)
{
    static char body[32768];
    (void)snprintf(body, sizeof body, "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]%s}", text,
                   fields);
    return body;
}

/* GET on a connection of its own; the status. */
static int get_status(const char *path)
{
    struct client client = client_open();
    char request[256];
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: t\r\n\r\n", path);
    (void)client_say(&client, request);
    int status = client_status(&client);
    client_close(&client);
    return status;
}

/* The value of `"content":"..."` pieces, joined, still escaped. */
static void join_content(const char *body, char *out)
{
    static const char key[] = "\"content\":\"";
    size_t length = 0;
    for (const char *at = strstr(body, key); at != NULL; at = strstr(at, key)) {
        for (at += sizeof key - 1; *at != '"'; at++) {
            out[length++] = *at;
            if (*at == '\\') {
                out[length++] = *++at;
            }
        }
    }
    out[length] = '\0';
}

static bool has(const struct answer *answer, const char *text)
{
    return strstr(answer->body, text) != NULL;
}

/* --- cases --------------------------------------------------------------------------------------------------------- */

static void routes_answer_as_the_table_says(void)
{
    struct client client = client_open();
    struct answer answer;

    CU_ASSERT(get_status("/health") == 200);
    CU_ASSERT(get_status("/health_generate") == 200);
    CU_ASSERT(get_status("/ping") == 200);
    CU_ASSERT(get_status("/nope") == 404);
    CU_ASSERT(get_status("/v1/models/org%2Fmodel") == 200);
    CU_ASSERT(get_status("/v1/models/other") == 404);
    CU_ASSERT(get_status("/flush_cache") == 200);
    fake.is_busy_for_flush = true;
    CU_ASSERT(get_status("/flush_cache") == 400);
    fake.is_busy_for_flush = false;
    (void)client_say(&client, "DELETE /v1/chat/completions HTTP/1.1\r\nHost: t\r\n\r\n");
    answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 405);
    CU_ASSERT_STRING_EQUAL(answer_field(&answer, "allow"), "POST, OPTIONS");
    CU_ASSERT(has(&answer, "\"error\":{\"object\":\"error\",\"message\":\"Method Not Allowed\""));
    answer_free(&answer);
    (void)client_say(&client, "HEAD /v1/models HTTP/1.1\r\nHost: t\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: t\r\n\r\n");
    answer = client_answer(&client, false);
    char length[512];
    (void)snprintf(length, sizeof length, "%s", answer_field(&answer, "content-length"));
    answer_free(&answer);
    answer = client_answer(&client, true);
    CU_ASSERT_STRING_EQUAL(answer_field(&answer, "content-length"), length);
    CU_ASSERT(has(&answer, "\"id\":\"org/model\""));
    CU_ASSERT_STRING_EQUAL(answer_field(&answer, "access-control-allow-origin"), "*");
    answer_free(&answer);
    client_close(&client);
}

static void long_answers_are_json_and_metrics(void)
{
    static const char *const paths[] = {"/server_info", "/get_server_info", "/pools", "/model_info", "/v1/models"};
    struct client client = client_open();

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char request[128];
        (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: t\r\n\r\n", paths[i]);
        (void)client_say(&client, request);
        struct answer answer = client_answer(&client, true);
        struct json_reader reader;
        CU_ASSERT(answer.status == 200);
        json_open_raw(&reader, answer.body, answer.body_bytes);
        enum err err = json_skip(&reader);
        struct json_event event = {.kind = JSON_NONE};
        err = err == ERR_OK ? json_next(&reader, &event) : err;
        if (err != ERR_OK || event.kind != JSON_END) {
            (void)fprintf(stderr, "%s: %s\n", paths[i], answer.body);
        }
        CU_ASSERT(err == ERR_OK && event.kind == JSON_END);
        answer_free(&answer);
    }
    (void)client_say(&client, "GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n");
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200);
    CU_ASSERT(has(&answer, "sglang:num_running_reqs{model_name=\"org/model\",engine_type=\"unified\""));
    CU_ASSERT(has(&answer, "ashlar_pool_used{pool=\"CONN\",domain=\"host\"} 1\n"));
    answer_free(&answer);
    (void)client_say(&client, "GET /metrics HTTP/1.0\r\n\r\n"); /* no chunks there: the end is the end */
    answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200 && has(&answer, "ashlar_pool_refused{pool=\"STACK\""));
    answer_free(&answer);
    client_close(&client);
}

static void a_whole_answer_has_the_documented_shape(void)
{
    struct client client = client_open();

    (void)post(&client, chat_body("Hello \\\"world\\\" \\u00e4\\n", ""));
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200);
    CU_ASSERT(has(&answer, "\"object\":\"chat.completion\""));
    CU_ASSERT(has(&answer, "\"model\":\"echo\""));
    CU_ASSERT(has(&answer, "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hello "
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
        "plain", "\\u0000\\u0001\\\\\\\"/", "\xf0\x9f\x98\x80 \xe4\xb8\xad\xe6\x96\x87 \xc3\xa9", "forever ab\\n",
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

    (void)snprintf(request, sizeof request,
                   "POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                   strlen(body), body);
    (void)client_say(&client, request);
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200 && answer_field(&answer, "transfer-encoding") == NULL);
    CU_ASSERT(strncmp(answer.body, "data: {", 7) == 0 && has(&answer, "data: [DONE]\n\n"));
    answer_free(&answer);
    client_close(&client);
}

static void pipelined_requests_are_answered_in_order(void)
{
    static char requests[16384];
    size_t length = 0;
    struct client client = client_open();
    static const char get[] = "GET /health HTTP/1.1\r\nHost: t\r\n\r\n";

    for (int i = 0; i < 4; i++) {
        memcpy(requests + length, get, sizeof get - 1);
        length += sizeof get - 1;
        length += write_post(requests + length, sizeof requests - length, chat_body("pipe", ""), "");
    }
    (void)client_send(&client, requests, length);
    for (int i = 0; i < 4; i++) {
        CU_ASSERT(client_status(&client) == 200);
        struct answer answer = client_answer(&client, true);
        CU_ASSERT(answer.status == 200 && has(&answer, "\"content\":\"pipe\""));
        answer_free(&answer);
    }
    client_close(&client);
}

static void every_request_works_byte_by_byte(void)
{
    static char request[4096];
    size_t length = write_post(request, sizeof request, chat_body("slowly", ""), "X: y\r\n");
    struct client client = client_open();
    int on = 1;

    (void)setsockopt(client.fd, IPPROTO_TCP, 1, &on, sizeof on);
    for (size_t i = 0; i < length; i++) {
        CU_ASSERT_FATAL(client_send(&client, request + i, 1));
    }
    CU_ASSERT(client_status(&client) == 200);
    client_close(&client);
}

/* Sends `body` in chunks of `size`. */
static void send_chunked(struct client *client, const char *body, size_t size)
{
    char line[32];
    (void)client_say(client, "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n");
    for (size_t at = 0, length = strlen(body); at < length; at += size) {
        size_t count = length - at < size ? length - at : size;
        (void)snprintf(line, sizeof line, "%zx;x=y\r\n", count);
        (void)client_say(client, line);
        (void)client_send(client, body + at, count);
        (void)client_say(client, "\r\n");
    }
    (void)client_say(client, "0\r\nT: 1\r\n\r\n");
}

static void chunked_bodies_grow_into_a_large_slot(void)
{
    static char body[200 * 1024];
    struct client client = client_open();

    send_chunked(&client, chat_body("chunks", ""), 3);
    CU_ASSERT(client_status(&client) == 200);
    (void)snprintf(body, sizeof body, "%s", chat_body("grown", ""));
    size_t length = strlen(body);
    memset(body + length - 1, ' ', sizeof body - length);
    body[sizeof body - 2] = '}';
    body[sizeof body - 1] = '\0';
    send_chunked(&client, body, 5000);
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 200 && has(&answer, "\"content\":\"grown\""));
    answer_free(&answer);
    CU_ASSERT(post(&client, body) && client_status(&client) == 200); /* the same by its length */
    client_close(&client);
    CU_ASSERT(pools_high_water(POOL_BODY_LARGE) >= 1);
}

static void too_long_bodies_are_413_before_they_are_read(void)
{
    struct client client = client_open();
    static char body[LARGE_BYTES + 4096];

    (void)client_say(&client, "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                              "Content-Length: 50000000000\r\n\r\n");
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 413);
    answer_free(&answer);
    CU_ASSERT(client_is_closed(&client));
    client_close(&client);

    client = client_open(); /* one that sends it all nevertheless sees the answer, not a reset */
    memset(body, ' ', sizeof body - 1);
    (void)post(&client, body);
    CU_ASSERT(client_status(&client) == 413);
    client_close(&client);
    client = client_open();
    send_chunked(&client, body, 65536);
    CU_ASSERT(client_status(&client) == 413);
    client_close(&client);
}

static void expectations_are_met_or_refused(void)
{
    struct client client = client_open();
    static char request[4096];
    size_t length = write_post(request, sizeof request, chat_body("expected", ""), "Expect: 100-continue\r\n");
    size_t head = (size_t)(strstr(request, "\r\n\r\n") - request) + 4;

    (void)client_send(&client, request, head);
    CU_ASSERT(client_status(&client) == 100);
    (void)client_send(&client, request + head, length - head);
    CU_ASSERT(client_status(&client) == 200);
    (void)client_say(&client, "POST /nope HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    CU_ASSERT(client_status(&client) == 404);
    CU_ASSERT(client_is_closed(&client));
    client_close(&client);
    client = client_open();
    (void)client_say(&client, "GET /health HTTP/1.1\r\nHost: t\r\nExpect: tea\r\n\r\n");
    CU_ASSERT(client_status(&client) == 417);
    client_close(&client);
}

static void smuggled_requests_are_never_answered(void)
{
    static const char *const heads[] = {
        "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
        "Transfer-Encoding: chunked\r\n\r\n{}",
        "GET /health HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\n", /* a body that nobody asked for */
        "GET /health HTTP/1.1\nHost: t\n\n",
    };

    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct client client = client_open();
        (void)client_say(&client, heads[i]);
        (void)client_say(&client, "GET /nope HTTP/1.1\r\nHost: t\r\n\r\n");
        CU_ASSERT(client_status(&client) == (i == 1 ? 200 : 400));
        CU_ASSERT(client_is_closed(&client));
        client_close(&client);
    }
}

static void preflights_are_answered_without_a_key(void)
{
    struct client client = client_open();

    options.api_key = "secret";
    (void)client_say(&client, "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: t\r\nOrigin: http://a\r\n"
                              "Access-Control-Request-Headers: authorization,x-stainless-os\r\n\r\n");
    struct answer answer = client_answer(&client, true);
    CU_ASSERT(answer.status == 204);
    CU_ASSERT_STRING_EQUAL(answer_field(&answer, "access-control-allow-headers"), "authorization,x-stainless-os");
    answer_free(&answer);
    CU_ASSERT(get_status("/v1/models") == 401);
    CU_ASSERT(get_status("/health") == 200);
    CU_ASSERT(get_status("/metrics") == 200);
    (void)client_say(&client, "GET /v1/models HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer secret\r\n\r\n");
    CU_ASSERT(client_status(&client) == 200);
    (void)client_say(&client, "GET /v1/models HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer secreT\r\n\r\n");
    CU_ASSERT(client_status(&client) == 401);
    options.api_key = NULL;
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

static void a_full_queue_is_503_before_the_body(void)
{
    struct client clients[6];

    for (int i = 0; i < 6; i++) { /* REQUEST: 2 running, 3 queued, 1 for the health check that this double does not take */
        clients[i] = client_open();
        if (i < 5) {
            (void)post(&clients[i], chat_body("hang ", ""));
        }
        (void)usleep(20000);
    }
    (void)client_say(&clients[5], "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                                  "Content-Length: 1000\r\n\r\n");
    struct answer answer = client_answer(&clients[5], true);
    CU_ASSERT(answer.status == 503);
    CU_ASSERT_PTR_NOT_NULL(answer_field(&answer, "retry-after"));
    answer_free(&answer);
    CU_ASSERT(get_status("/health") == 200);
    for (int i = 0; i < 6; i++) {
        client_close(&clients[i]);
    }
    CU_ASSERT(all_home() == 0);
    struct client client = client_open();
    (void)post(&client, chat_body("free again", ""));
    CU_ASSERT(client_status(&client) == 200);
    client_close(&client);
}

static void text_passes_while_large_slots_are_busy(void)
{
    struct client drips[3];
    static const char head[] = "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                               "Content-Length: 100000\r\n\r\n{";
    static char body[100001];

    for (int i = 0; i < 3; i++) {
        drips[i] = client_open();
        (void)client_say(&drips[i], head);
        (void)usleep(20000);
    }
    CU_ASSERT(pools_used(POOL_BODY_LARGE) == 2);
    struct client client = client_open();
    (void)post(&client, chat_body("me first", ""));
    CU_ASSERT(client_status(&client) == 200);
    client_close(&client);

    /* The oldest two stall until --body-timeout; the third then gets a slot, if it does not run out of --body-wait. */
    CU_ASSERT(client_status(&drips[0]) == 408);
    CU_ASSERT(client_status(&drips[1]) == 408);
    int status = client_status(&drips[2]);
    CU_ASSERT(status == 503 || status == 408);
    for (int i = 0; i < 3; i++) {
        client_close(&drips[i]);
    }
    CU_ASSERT(all_home() == 0);

    /* One that waits is served when a slot comes free. */
    for (int i = 0; i < 3; i++) {
        drips[i] = client_open();
        (void)client_say(&drips[i], head);
        (void)usleep(20000);
    }
    client_close(&drips[0]);
    memset(body, ' ', sizeof body - 1);
    static const char waited[] = "\"messages\":[{\"role\":\"user\",\"content\":\"waited\"}]";
    memcpy(body, waited, sizeof waited - 1);
    body[99998] = '}';
    (void)client_send(&drips[2], body, 99999);
    struct answer answer = client_answer(&drips[2], true);
    CU_ASSERT(answer.status == 200 && has(&answer, "\"content\":\"waited\""));
    answer_free(&answer);
    client_close(&drips[1]);
    client_close(&drips[2]);
}

static void slow_heads_and_idle_connections_are_closed(void)
{
    struct client silent = client_open();
    struct client slow = client_open();
    struct client idle = client_open();

    (void)client_say(&slow, "GET /hea");
    (void)client_say(&idle, "GET /health HTTP/1.1\r\nHost: t\r\n\r\n");
    CU_ASSERT(client_status(&idle) == 200);
    CU_ASSERT(client_status(&slow) == 408);
    CU_ASSERT(client_is_closed(&silent));
    CU_ASSERT(client_is_closed(&idle));
    client_close(&silent);
    client_close(&slow);
    client_close(&idle);
}

static void too_many_connections_get_one_answer(void)
{
    struct client clients[CONNECTIONS + 1];

    for (int i = 0; i < CONNECTIONS; i++) {
        clients[i] = client_open();
    }
    (void)usleep(30000);
    clients[CONNECTIONS] = client_open();
    struct answer answer = client_answer(&clients[CONNECTIONS], true);
    CU_ASSERT(answer.status == 503 && has(&answer, "too many connections"));
    answer_free(&answer);
    CU_ASSERT(client_is_closed(&clients[CONNECTIONS]));
    for (int i = 0; i <= CONNECTIONS; i++) {
        client_close(&clients[i]);
    }
    CU_ASSERT(all_home() == 0);
    CU_ASSERT(get_status("/health") == 200);
}

static void leaving_clients_free_everything(void)
{
    static char request[4096];
    size_t length = write_post(request, sizeof request, chat_body("slow forever xy", ",\"stream\":true,\"max_tokens\":900"), "");

    for (size_t cut = 0; cut <= length; cut += cut < 150 ? 30 : 7) {
        for (int how = 0; how < 3; how++) {
            struct client client = client_open();
            (void)client_send(&client, request, cut < length - 7 ? cut : length);
            if (how == 0) {
                client_close(&client);
            } else if (how == 1) {
                client_reset(&client);
            } else {
                (void)shutdown(client.fd, SHUT_WR); /* half-closed is gone */
                CU_ASSERT(client_is_closed(&client) || true);
                client_close(&client);
            }
        }
    }
    CU_ASSERT(all_home() == 0);
    for (int events = 0; events < 4; events++) { /* while tokens come */
        struct client client = client_open();
        (void)client_send(&client, request, length);
        for (int i = 0; i <= events; i++) {
            char *end = client_until(&client, "\n\n");
            CU_ASSERT_PTR_NOT_NULL_FATAL(end);
            client.begin = (size_t)(end - client.bytes);
        }
        events % 2 == 0 ? client_close(&client) : client_reset(&client);
        CU_ASSERT(all_home() == 0);
    }
    CU_ASSERT(fake.cancelled_count > 0);
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
    int length = snprintf(body, sizeof body, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":"
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

static void when_a_pool_refuses_the_client_is_told(void)
{
    static const enum pool pools[] = {POOL_REQUEST, POOL_TOKENS, POOL_BODY_SMALL};

    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
        struct client client = client_open();
        pools_refuse(pools[i], 0, POOLS_REFUSE_ONCE);
        (void)post(&client, chat_body("x", ""));
        CU_ASSERT(client_status(&client) == 503);
        client_close(&client);
        CU_ASSERT(all_home() == 0);
        client = client_open();
        (void)post(&client, chat_body("x", ""));
        CU_ASSERT(client_status(&client) == 200);
        client_close(&client);
    }
}

/* The last one: the server goes. */
static void sigterm_drains_cuts_and_ends_well(void)
{
    struct client idle = client_open();
    struct client running = client_open();
    struct client endless = client_open();
    struct client queued = client_open();

    (void)client_say(&idle, "GET /health HTTP/1.1\r\nHost: t\r\n\r\n");
    CU_ASSERT(client_status(&idle) == 200);
    (void)post(&running, chat_body("slow one two three", ",\"stream\":true"));
    (void)post(&endless, chat_body("slow forever x", ",\"stream\":true,\"max_tokens\":900"));
    (void)post(&queued, chat_body("hang x", ""));
    CU_ASSERT_PTR_NOT_NULL(client_until(&running, "\n\n"));
    CU_ASSERT_PTR_NOT_NULL(client_until(&endless, "\n\n"));
    (void)kill(getpid(), SIGTERM);
    (void)usleep(30000);
    (void)client_say(&idle, "GET /health HTTP/1.1\r\nHost: t\r\n\r\n");
    struct answer answer = client_answer(&idle, true);
    CU_ASSERT(answer.status == 503);
    answer_free(&answer);
    struct client late = client_open();
    CU_ASSERT(late.fd < 0);
    client_close(&late);

    running.begin = endless.begin = 0;
    answer = client_answer(&running, true);
    CU_ASSERT(answer.status == 200 && has(&answer, "\"finish_reason\":\"stop\"") && has(&answer, "[DONE]"));
    answer_free(&answer);
    answer = client_answer(&endless, true);
    CU_ASSERT(answer.status == 200 && has(&answer, "\"finish_reason\":\"abort\"") && has(&answer, "[DONE]"));
    answer_free(&answer);
    answer = client_answer(&queued, true);
    CU_ASSERT(answer.status == 503);
    answer_free(&answer);
    (void)pthread_join(server_thread, NULL);
    CU_ASSERT(was_clean);
    client_close(&idle);
    client_close(&running);
    client_close(&endless);
    client_close(&queued);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(routes_answer_as_the_table_says),
        CASE(long_answers_are_json_and_metrics),
        CASE(a_whole_answer_has_the_documented_shape),
        CASE(a_stream_is_role_text_finish_usage_done),
        CASE(a_stream_joined_equals_the_whole_answer),
        CASE(http_1_0_gets_plain_bodies),
        CASE(pipelined_requests_are_answered_in_order),
        CASE(every_request_works_byte_by_byte),
        CASE(chunked_bodies_grow_into_a_large_slot),
        CASE(too_long_bodies_are_413_before_they_are_read),
        CASE(expectations_are_met_or_refused),
        CASE(smuggled_requests_are_never_answered),
        CASE(preflights_are_answered_without_a_key),
        CASE(refusals_have_a_status_even_when_streamed),
        CASE(a_full_queue_is_503_before_the_body),
        CASE(text_passes_while_large_slots_are_busy),
        CASE(slow_heads_and_idle_connections_are_closed),
        CASE(too_many_connections_get_one_answer),
        CASE(leaving_clients_free_everything),
        CASE(slow_readers_lose_nothing_and_hold_up_nobody),
        CASE(pictures_are_taken_from_data_urls),
        CASE(when_a_pool_refuses_the_client_is_told),
        CASE(sigterm_drains_cuts_and_ends_well),
        {NULL, NULL},
    };

    start();
    int status = harness_run(argc, argv, "http/server", cases, all_home);
    if (!is_over) {
        (void)kill(getpid(), SIGTERM);
        (void)pthread_join(server_thread, NULL);
    }
    fake_stop();
    return status;
}
