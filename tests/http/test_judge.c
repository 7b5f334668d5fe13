/* test_judge: what a head alone decides, in this order: expectation, route, method, key, type, length, room. */
#include "engine/http/judge.h"
#include "tests/http/serve.h"

static void a_key_is_bearer_and_all_of_it(void)
{
    CU_ASSERT(judge_is_key("Bearer secret", 13, "secret"));
    CU_ASSERT(judge_is_key("bearer  secret", 14, "secret"));
    CU_ASSERT(!judge_is_key("Bearer secre", 12, "secret"));
    CU_ASSERT(!judge_is_key("Bearer secretx", 14, "secret"));
    CU_ASSERT(!judge_is_key("Bearer ", 7, "secret"));
    CU_ASSERT(!judge_is_key("secret", 6, "secret"));
    CU_ASSERT(!judge_is_key("Basic secret", 12, "secret"));
    CU_ASSERT(!judge_is_key("", 0, "secret"));
}

static void a_type_is_json_whatever_its_parameters(void)
{
    static const char *const good[] = {"application/json", "Application/JSON;charset=utf-8", "application/json ; x"};
    static const char *const bad[] = {"", "json", "text/plain", "application/jsonx", "application/json+x"};

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CU_ASSERT(judge_is_json(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT(!judge_is_json(bad[i], strlen(bad[i])));
    }
}

static int status_of(const char *request)
{
    struct client client = client_open();
    (void)client_say(&client, request);
    int status = client_status(&client);
    client_close(&client);
    return status;
}

static void refusals_come_in_their_order(void)
{
    options.api_key = "k";
    CU_ASSERT(status_of("POST /nope HTTP/1.1\r\nHost: t\r\nExpect: x\r\nContent-Length: 99999999\r\n\r\n") == 417);
    CU_ASSERT(status_of("POST /nope HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999\r\n\r\n") == 404);
    CU_ASSERT(status_of("PUT /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999\r\n\r\n") == 405);
    CU_ASSERT(status_of("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999\r\n\r\n") == 401);
    options.api_key = NULL;
    CU_ASSERT(status_of("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999\r\n\r\n") == 400);
    CU_ASSERT(status_of("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                        "Content-Length: 99999999\r\n\r\n") == 413);
    CU_ASSERT(status_of("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\r\n") ==
              400);
    options.enable_metrics = false;
    CU_ASSERT(status_of("GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n") == 404);
    options.enable_metrics = true;
    CU_ASSERT(status_of("OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n") == 204);
    CU_ASSERT(status_of("OPTIONS /nope HTTP/1.1\r\nHost: t\r\n\r\n") == 404);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_key_is_bearer_and_all_of_it),
        CASE(a_type_is_json_whatever_its_parameters),
        CASE(refusals_come_in_their_order),
        {NULL, NULL},
    };
    return serve_cases(argc, argv, "http/judge", cases);
}
