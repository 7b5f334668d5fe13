/* test_request: the first refusal wins, and a fresh record knows nothing of the client before. */
#include "engine/request.h"
#include "tests/harness.h"

#include <string.h>

static struct request *fresh(void)
{
    struct request *request = harness_memory(sizeof *request);

    memset(request, 0xA5, sizeof *request);
    request_open(request, 3, 77, 1000, 1700000000);
    return request;
}

static void a_fresh_record_is_empty(void)
{
    struct request *request = fresh();

    CU_ASSERT(request->index == 3 && request->number == 77);
    CU_ASSERT(request->arrived_us == 1000 && request->created_s == 1700000000);
    CU_ASSERT(atomic_load(&request->stage) == REQUEST_READING);
    CU_ASSERT(!atomic_load(&request->is_cancelled) && !atomic_load(&request->is_body_free));
    CU_ASSERT(request->err == ERR_OK && request->err_param[0] == '\0' && request->err_detail[0] == '\0');
    CU_ASSERT(request->picture_count == 0 && request->prompt_tokens == 0);
    CU_ASSERT(request->matched_stop_id == -1 && request->matched_stop_string == -1);
}

static void the_first_refusal_wins(void)
{
    struct request *request = fresh();

    CU_ASSERT(request_refuse(request, ERR_BAD_FIELD, "top_p", "%g is above 1", 1.5) == ERR_BAD_FIELD);
    CU_ASSERT(request_refuse(request, ERR_INTERNAL, "", "later") == ERR_BAD_FIELD);
    CU_ASSERT(request->err == ERR_BAD_FIELD);
    CU_ASSERT(strcmp(request->err_param, "top_p") == 0);
    CU_ASSERT(strcmp(request->err_detail, "1.5 is above 1") == 0);
}

static void long_details_are_cut_and_ended(void)
{
    struct request *request = fresh();
    char text[2 * ERROR_DETAIL_BYTES_MAX];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CU_ASSERT(request_refuse(request, ERR_BAD_JSON, text, "%s", text) == ERR_BAD_JSON);
    CU_ASSERT(strlen(request->err_detail) == ERROR_DETAIL_BYTES_MAX - 1);
    CU_ASSERT(strlen(request->err_param) == sizeof request->err_param - 1);
}

static void refuse_without_a_reason(void)
{
    (void)request_refuse(fresh(), ERR_OK, "", "nothing");
}

static void a_refusal_needs_an_error(void)
{
    CU_ASSERT(harness_aborts(refuse_without_a_reason));
}

static void another_choice_has_the_prompt_and_a_life_of_its_own(void)
{
    static struct request other;
    static int32_t tokens[2][8] = {{5, 6, 7}};
    struct request *first = fresh();

    first->tokens = tokens[0];
    first->prompt_tokens = 3;
    first->max_new_tokens = 4;
    first->choice_count = 3;
    first->sampling.seed = 9;
    first->body = (unsigned char *)tokens;
    first->body_bytes = 1;
    atomic_store(&first->stage, REQUEST_CHOICES);
    request_open_choice(&other, first->index + 1, first->number + 7, 2, first, tokens[1]);
    CU_ASSERT(other.index == first->index + 1 && other.number == first->number + 7 && other.group == first->group);
    CU_ASSERT(other.choice == 2 && other.choice_count == 3 && other.sampling.seed == 9 && other.max_new_tokens == 4);
    CU_ASSERT(other.tokens == tokens[1] && memcmp(tokens[1], tokens[0], sizeof tokens[0]) == 0);
    CU_ASSERT(other.body == NULL && other.body_bytes == 0);
    CU_ASSERT(atomic_load(&other.stage) == REQUEST_READING && atomic_load(&first->stage) == REQUEST_CHOICES);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_fresh_record_is_empty),
        CASE(the_first_refusal_wins),
        CASE(another_choice_has_the_prompt_and_a_life_of_its_own),
        CASE(long_details_are_cut_and_ended),
        CASE(a_refusal_needs_an_error),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/request", cases, NULL);
}
