/* test_api_models: one model, by its served name; every other id is unknown. */
#include "tests/http/serve.h"

static struct answer get(const char *path)
{
    struct client client = client_open();
    char request[256];
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: t\r\n\r\n", path);
    (void)client_say(&client, request);
    struct answer answer = client_answer(&client, true);
    client_close(&client);
    return answer;
}

static void the_list_holds_the_card_that_the_id_gives(void)
{
    struct answer list = get("/v1/models");
    struct answer card = get("/v1/models/org/model");

    CU_ASSERT(list.status == 200 && card.status == 200);
    CU_ASSERT(has(&list, "{\"object\":\"list\",\"data\":["));
    CU_ASSERT(has(&list, card.body));
    CU_ASSERT(has(&card, "\"id\":\"org/model\",\"object\":\"model\"") && has(&card, "\"max_model_len\":2048"));
    answer_free(&list);
    answer_free(&card);
}

static void another_id_is_unknown(void)
{
    static const char *const ids[] = {"/v1/models/org", "/v1/models/org/modelx", "/v1/models/ORG/model",
                                      "/v1/models/%22"};

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct answer answer = get(ids[i]);
        CU_ASSERT(answer.status == 404);
        CU_ASSERT(has(&answer, "\"type\":\"invalid_request_error\",\"param\":\"model\",\"code\":\"model_not_found\""));
        answer_free(&answer);
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_list_holds_the_card_that_the_id_gives),
        CASE(another_id_is_unknown),
        {NULL, NULL},
    };
    return serve_cases(argc, argv, "http/api_models", cases);
}
