/* test_conn: requests are read however they are cut, in order, in time, and never two at once. */
#include "tests/http/serve.h"

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
        ("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
         "Transfer-Encoding: chunked\r\n\r\n{}"),
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

static void leaving_clients_free_everything(void)
{
    static char request[4096];
    size_t length =
        write_post(request, sizeof request, chat_body("slow forever xy", ",\"stream\":true,\"max_tokens\":900"), "");

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

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(pipelined_requests_are_answered_in_order),
        CASE(every_request_works_byte_by_byte),
        CASE(chunked_bodies_grow_into_a_large_slot),
        CASE(too_long_bodies_are_413_before_they_are_read),
        CASE(expectations_are_met_or_refused),
        CASE(smuggled_requests_are_never_answered),
        CASE(slow_heads_and_idle_connections_are_closed),
        CASE(leaving_clients_free_everything),
        {NULL, NULL},
    };
    return serve_cases(argc, argv, "http/conn", cases);
}
