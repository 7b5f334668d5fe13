/* test_api: routes answer as the table says, with or without a key. */
#include "tests/http/serve.h"

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

static void a_step_that_does_not_end_is_seen(void)
{
    double patience_s = options.watchdog_timeout;

    options.watchdog_timeout = 0.05;
    atomic_store(&fake.stats.tick_started_us, clock_now_us());
    CU_ASSERT(get_status("/health") == 200);
    (void)usleep(80000);
    CU_ASSERT(get_status("/health") == 503);
    options.watchdog_timeout = 0; /* never */
    CU_ASSERT(get_status("/health") == 200);
    options.watchdog_timeout = 0.05;
    atomic_store(&fake.stats.tick_started_us, 0); /* it ended */
    CU_ASSERT(get_status("/health") == 200);
    options.watchdog_timeout = patience_s;
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(routes_answer_as_the_table_says),
        CASE(preflights_are_answered_without_a_key),
        CASE(a_step_that_does_not_end_is_seen),
        {NULL, NULL},
    };
    return serve_cases(argc, argv, "http/api", cases);
}
