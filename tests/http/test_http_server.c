/* test_http_server: too many connections, and the way down. */
#include "tests/http/serve.h"

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
        CASE(too_many_connections_get_one_answer),
        CASE(sigterm_drains_cuts_and_ends_well),
        {NULL, NULL},
    };
    return serve_cases(argc, argv, "http/http_server", cases);
}
