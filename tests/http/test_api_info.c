/* test_api_info: long answers are whole JSON, and /metrics is whole text. */
#include "tests/http/serve.h"

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

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(long_answers_are_json_and_metrics),
        {NULL, NULL},
    };
    return serve_cases(argc, argv, "http/api_info", cases);
}
