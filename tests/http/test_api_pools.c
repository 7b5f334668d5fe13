/* test_api_pools: who holds what is one request away, and the list of nobody is empty. */
#include "tests/http/serve.h"

static struct answer get_pools(void)
{
    struct client client = client_open();
    (void)client_say(&client, "GET /pools HTTP/1.1\r\nHost: t\r\n\r\n");
    struct answer answer = client_answer(&client, true);
    client_close(&client);
    return answer;
}

static void every_pool_is_listed(void)
{
    struct answer answer = get_pools();

    for (int i = 0; i < POOL_COUNT; i++) {
        char row[64];
        (void)snprintf(row, sizeof row, "{\"pool\":\"%s\",", pools_name((enum pool)i));
        CU_ASSERT(has(&answer, row));
    }
    CU_ASSERT(has(&answer, "\"requests\":[") && !has(&answer, "\"stage\":"));
    answer_free(&answer);
}

static void holders_are_listed_with_what_they_hold(void)
{
    struct client hanging = client_open();
    struct client reading = client_open();

    (void)post(&hanging, chat_body("hang ", ""));
    (void)client_say(&reading, "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                               "Content-Length: 100000\r\n\r\n{");
    (void)usleep(50000);
    struct answer answer = get_pools();
    CU_ASSERT(has(&answer, "\"stage\":\"engine\"") && has(&answer, "\"stage\":\"reading\""));
    CU_ASSERT(has(&answer, "\"body\":\"BODY_LARGE\"") && has(&answer, "\"body\":\"none\""));
    CU_ASSERT(has(&answer, "\"state\":\"body\"") && has(&answer, "\"state\":\"answer\""));
    answer_free(&answer);
    log_set_level(LOG_ERROR);
    (void)kill(getpid(), SIGUSR1); /* the same into the log: nothing breaks */
    client_close(&hanging);
    client_close(&reading);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_pool_is_listed),
        CASE(holders_are_listed_with_what_they_hold),
        {NULL, NULL},
    };
    return serve_cases(argc, argv, "http/api_pools", cases);
}
