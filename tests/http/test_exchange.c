/* test_exchange: what a request holds is taken all or nothing, and comes back. */
#include "tests/http/serve.h"

static void a_full_queue_is_503_before_the_body(void)
{
    struct client clients[6];

    for (int i = 0; i < 6;
         i++) { /* REQUEST: 2 running, 3 queued, 1 for the health check that this double does not take */
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

/* What the pools hold of requests. */
static uint32_t held(void)
{
    return pools_used(POOL_REQUEST) + pools_used(POOL_TOKENS);
}

static void choices_take_all_that_they_need_or_nothing(void)
{
    struct client one = client_open(), other = client_open();

    (void)post(&one, chat_body("hang ", ",\"n\":4"));
    (void)usleep(50000);
    CU_ASSERT_EQUAL(held(), 8);
    CU_ASSERT_EQUAL(pools_used(POOL_BODY_SMALL), 0);
    (void)post(&other, chat_body("two", ",\"n\":2")); /* one place is left */
    struct answer answer = client_answer(&other, true);
    CU_ASSERT(answer.status == 503 && has(&answer, "2 choices take as many places"));
    CU_ASSERT_PTR_NOT_NULL(answer_field(&answer, "retry-after"));
    answer_free(&answer);
    (void)post(&other, chat_body("one", ""));
    CU_ASSERT(client_status(&other) == 200);
    client_close(&one); /* leaves: all four go */
    for (int i = 0; i < 300 && held() > 0; i++) {
        (void)usleep(10000);
    }
    CU_ASSERT_EQUAL(held(), 0);
    client_close(&other);
    CU_ASSERT(all_home() == 0);
    for (int pool = 0; pool < 2; pool++) {
        for (uint64_t n = 1; n < 4; n++) {
            pools_refuse(pool == 0 ? POOL_REQUEST : POOL_TOKENS, n, POOLS_REFUSE_ONCE);
            other = client_open();
            (void)post(&other, chat_body("x", ",\"n\":4"));
            CU_ASSERT(client_status(&other) == 503);
            client_close(&other);
            CU_ASSERT(all_home() == 0);
        }
    }
}

static void a_refused_choice_takes_the_others_with_it(void)
{
    struct client client = client_open();

    (void)post(&client, chat_body("fail one two three four five six seven", ",\"n\":3"));
    CU_ASSERT(client_status(&client) == 500);
    client_close(&client);
    CU_ASSERT(all_home() == 0);
    client = client_open();
    (void)post(&client, chat_body("hang x", ",\"n\":3,\"stream\":true"));
    struct answer head = client_answer(&client, false);
    CU_ASSERT(head.status == 200);
    answer_free(&head);
    client_close(&client);
    CU_ASSERT(all_home() == 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_full_queue_is_503_before_the_body),
        CASE(text_passes_while_large_slots_are_busy),
        CASE(when_a_pool_refuses_the_client_is_told),
        CASE(choices_take_all_that_they_need_or_nothing),
        CASE(a_refused_choice_takes_the_others_with_it),
        {NULL, NULL},
    };
    return serve_cases(argc, argv, "http/exchange", cases);
}
