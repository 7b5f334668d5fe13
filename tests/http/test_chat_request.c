/* test_chat_request: every field is taken with its type and range or refused by its name; null is "not given"; unknown
 * fields are ignored; no body, however broken, does more than be refused. */
#include "tests/http/parse_chat.h"

#include <math.h>

static void what_is_left_out_is_the_default(void)
{
    CU_ASSERT(parse_fields("") == ERR_OK);
    CU_ASSERT(parsed.sampling.temperature == 0.5F && parsed.sampling.top_p == 0.9F && parsed.sampling.top_k == 20);
    CU_ASSERT(parsed.sampling.repetition_penalty == 1.05F);
    CU_ASSERT_STRING_EQUAL(parsed.model, "default");
    CU_ASSERT(!parsed.is_stream && parsed.skip_special_tokens && !parsed.wants_usage && !parse.has_seed);
    CU_ASSERT(parse.limit_tokens == 0 && parse.chat.message_count == 1 && parse.chat.adds_generation_prompt);
}

static void null_is_not_given(void)
{
    static const char *const names[] = {
        "model",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "repetition_penalty",
        "frequency_penalty",
        "presence_penalty",
        "max_tokens",
        "max_completion_tokens",
        "min_tokens",
        "stop",
        "stop_token_ids",
        "logit_bias",
        "seed",
        "n",
        "stream",
        "stream_options",
        "logprobs",
        "top_logprobs",
        "tools",
        "tool_choice",
        "response_format",
        "regex",
        "ebnf",
        "chat_template_kwargs",
        "ignore_eos",
        "no_stop_trim",
        "skip_special_tokens",
        "user",
        "continue_final_message",
    };
    char fields[128];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(fields, sizeof fields, ",\"%s\":null", names[i]);
        CU_ASSERT(parse_fields(fields) == ERR_OK);
        CU_ASSERT(parsed.sampling.top_k == 20 && parsed.skip_special_tokens && parse.limit_tokens == 0);
    }
}

static void values_in_range_are_taken(void)
{
    static const char *const fields[] = {
        ",\"temperature\":0",
        ",\"temperature\":1e-40",
        ",\"temperature\":2.5",
        ",\"top_p\":1",
        ",\"top_p\":1e-3",
        ",\"top_k\":-1",
        ",\"top_k\":9999999",
        ",\"top_k\":5.0",
        ",\"min_p\":0",
        ",\"min_p\":1",
        ",\"repetition_penalty\":2",
        ",\"frequency_penalty\":-2",
        ",\"presence_penalty\":2.0",
        ",\"max_tokens\":5.0",
        ",\"max_tokens\":1e3",
        ",\"max_completion_tokens\":1",
        ",\"min_tokens\":0",
        ",\"seed\":-5",
        ",\"seed\":9223372036854775807",
        ",\"n\":1",
        ",\"stop\":\"\"",
        ",\"stop\":[]",
        ",\"stop\":[\"\"]",
        ",\"stop\":\"\\u0000\"",
        ",\"stop_token_ids\":[0,999]",
        ",\"logit_bias\":{}",
        ",\"logit_bias\":{\"0\":-100,\"999\":100}",
        ",\"top_logprobs\":0",
        ",\"logprobs\":false",
        ",\"stream_options\":{}",
        ",\"stream_options\":{\"include_usage\":null,\"x\":[]}",
        ",\"tools\":[]",
        ",\"response_format\":{\"type\":\"text\"}",
        ",\"tool_choice\":\"none\"",
        ",\"tool_choice\":\"auto\"",
        ",\"nobody\":{\"knows\":[1,{\"this\":null}]}",
        ",\"continue_final_message\":false",
        ",\"model\":\"\"",
        ",\"reasoning_effort\":\"low\",\"rid\":\"x\",\"priority\":3",
        ",\"chat_template_kwargs\":{\"enable_thinking\":false}",
    };

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        enum err err = parse_fields(fields[i]);
        if (err != ERR_OK) {
            (void)fprintf(stderr, "%s: %s\n", fields[i], parsed.err_detail);
        }
        CU_ASSERT(err == ERR_OK);
    }
}

/* clang-format off */
/* Names and values that are out of range, of a wrong type, or not offered. */
static const struct {
    const char *name, *value;
} bad_rows[] = {
    {"temperature", "-1"}, {"temperature", "1e999"}, {"temperature", "1e300"}, {"temperature", "\"0.5\""},
    {"temperature", "true"}, {"temperature", "[]"}, {"top_p", "0"}, {"top_p", "1e-60"}, {"top_p", "1.01"},
    {"top_p", "-0.1"}, {"top_k", "0"}, {"top_k", "-2"}, {"top_k", "1.5"}, {"top_k", "3000000000"}, {"min_p", "2"},
    {"min_p", "-0.1"}, {"repetition_penalty", "0"}, {"repetition_penalty", "2.1"}, {"frequency_penalty", "3"},
    {"presence_penalty", "-2.5"}, {"max_tokens", "0"}, {"max_tokens", "-1"}, {"max_tokens", "5.5"},
    {"max_tokens", "\"5\""}, {"max_tokens", "2147483648"}, {"max_tokens", "1e18"}, {"max_tokens", "true"},
    {"max_completion_tokens", "0"}, {"min_tokens", "-1"}, {"seed", "1.5"}, {"seed", "\"1\""},
    {"seed", "9223372036854775808"}, {"n", "0"}, {"n", "5"}, {"n", "1.5"}, {"n", "\"1\""}, {"top_logprobs", "21"},
    {"top_logprobs", "-1"}, {"logprobs", "true"}, {"logprobs", "1"}, {"stream", "\"true\""}, {"stream", "1"},
    {"stream_options", "5"}, {"ignore_eos", "0"}, {"stop", "5"}, {"stop", "[1]"}, {"stop", "[\"a\",null]"},
    {"stop", "{}"}, {"stop_token_ids", "5"}, {"stop_token_ids", "[1000]"}, {"stop_token_ids", "[-1]"},
    {"stop_token_ids", "[\"1\"]"}, {"logit_bias", "[]"}, {"logit_bias", "{\"1000\":1}"},
    {"logit_bias", "{\"-1\":1}"}, {"logit_bias", "{\"abc\":1}"}, {"logit_bias", "{\"\":1}"},
    {"logit_bias", "{\"99999999999\":1}"}, {"logit_bias", "{\"1\":1000}"}, {"logit_bias", "{\"1\":\"x\"}"},
    {"logit_bias", "{\"1\":null}"}, {"response_format", "{\"type\":\"json_object\"}"}, {"response_format", "{}x"},
    {"response_format", "\"text\""}, {"response_format", "{\"type\":\"json_schema\",\"json_schema\":{}}"},
    {"regex", "\"a+\""}, {"ebnf", "\"x\""}, {"structural_tag", "{}"}, {"tool_choice", "\"required\""},
    {"tool_choice", "\"maybe\""}, {"tool_choice", "5"}, {"tool_choice", "{\"type\":\"function\"}"}, {"tools", "5"},
    {"tools", "{}"}, {"model", "5"}, {"continue_final_message", "true"}, {"input_ids", "[1]"},
    {"stop_regex", "\"a\""},
};
/* clang-format on */

static void values_out_of_range_are_refused_by_name(void)
{
    char fields[256];

    for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++) {
        (void)snprintf(fields, sizeof fields, ",\"%s\":%s", bad_rows[i].name, bad_rows[i].value);
        enum err err = parse_fields(fields);
        bool is_named =
            strcmp(parsed.err_param, bad_rows[i].name) == 0 && strstr(parsed.err_detail, bad_rows[i].name) != NULL;
        if (err == ERR_OK || (!is_named && err != ERR_BAD_JSON)) {
            (void)fprintf(stderr, "%s: %d %s\n", fields, (int)err, parsed.err_detail);
        }
        CU_ASSERT(err_row(err)->status == 400);
        CU_ASSERT(is_named || err == ERR_BAD_JSON);
    }
}

static void values_reach_their_places(void)
{
    CU_ASSERT(
        parse_fields(
            ",\"temperature\":0.25,\"top_p\":0.5,\"top_k\":7,\"min_p\":0.125,\"seed\":42,\"max_tokens\":9,"
            "\"max_completion_tokens\":8,\"min_tokens\":3,\"stream\":true,\"stream_options\":{\"include_usage\":"
            "true},\"stop\":[\"a\\n\",\"b\"],\"stop_token_ids\":[5,6],\"logit_bias\":{\"3\":-1.5,\"3\":2,\"4\":1},"
            "\"ignore_eos\":true,\"no_stop_trim\":true,\"skip_special_tokens\":false,\"model\":\"m\\u00e4\"") ==
        ERR_OK);
    const struct sampling_params *s = &parsed.sampling;
    CU_ASSERT(s->temperature == 0.25F && s->top_p == 0.5F && s->top_k == 7 && s->min_p == 0.125F);
    CU_ASSERT(parse.has_seed && s->seed == 42 && s->min_tokens == 3 && s->ignore_eos);
    CU_ASSERT(parse.limit_tokens == 8); /* the newer name wins */
    CU_ASSERT(parsed.is_stream && parsed.wants_usage && parsed.no_stop_trim && !parsed.skip_special_tokens);
    CU_ASSERT(parsed.stop_string_count == 2 && parsed.stop_strings[0].bytes == 2 &&
              parsed.stop_strings[1].text[0] == 'b');
    CU_ASSERT(s->stop_id_count == 2 && s->stop_ids[1] == 6);
    CU_ASSERT(s->bias_count == 2 && s->bias_ids[0] == 3 && s->bias_values[0] == 2); /* the last of equal keys */
    CU_ASSERT_STRING_EQUAL(parsed.model, "m\xc3\xa4");
}

static void the_last_of_equal_fields_counts(void)
{
    CU_ASSERT(parse_fields(",\"max_tokens\":5,\"max_tokens\":6") == ERR_OK && parse.limit_tokens == 6);
    CU_ASSERT(parse_fields(",\"stop\":[\"a\",\"b\"],\"stop\":\"c\"") == ERR_OK && parsed.stop_string_count == 1);
    CU_ASSERT(parse_fields(",\"messages\":[]") == ERR_BAD_FIELD);
    CU_ASSERT(parse_fields(",\"tools\":[{}],\"tools\":null") == ERR_OK && parse.chat.tools.length == 0);
}

static void tools_stay_untouched(void)
{
    CU_ASSERT(parse_fields(",\"tools\":[{\"a\":\"\\u0041\\n\"} ]") == ERR_OK);
    CU_ASSERT(span_is(parse.chat.tools, "[{\"a\":\"\\u0041\\n\"} ]"));
    CU_ASSERT(parse_fields(",\"tool_choice\":\"none\",\"tools\":[{}]") == ERR_OK && parse.chat.tools.length == 0);
    parse_rules.has_tools = false;
    CU_ASSERT(parse_fields(",\"tools\":[{}]") == ERR_UNSUPPORTED);
    parse_rules.has_tools = true;
}

static void lists_are_bounded(void)
{
    static char fields[65536];
    size_t length = (size_t)snprintf(fields, sizeof fields, ",\"logit_bias\":{\"0\":1");

    for (int i = 1; i < LOGIT_BIAS_MAX + 1; i++) {
        length += (size_t)snprintf(fields + length, sizeof fields - length, ",\"%d\":1", i);
        if (i >= LOGIT_BIAS_MAX - 1) {
            char *end = fields + length;
            (void)snprintf(end, sizeof fields - length, "}");
            CU_ASSERT(parse_fields(fields) == (i < LOGIT_BIAS_MAX ? ERR_OK : ERR_BAD_FIELD));
        }
    }
    for (int count = STOP_STRINGS_MAX; count <= STOP_STRINGS_MAX + 1; count++) {
        length = (size_t)snprintf(fields, sizeof fields, ",\"stop\":[\"a\"");
        for (int i = 1; i < count; i++) {
            length += (size_t)snprintf(fields + length, sizeof fields - length, ",\"a\"");
        }
        (void)snprintf(fields + length, sizeof fields - length, "]");
        CU_ASSERT(parse_fields(fields) == (count <= STOP_STRINGS_MAX ? ERR_OK : ERR_BAD_FIELD));
    }
    for (int bytes = STOP_BYTES_MAX; bytes <= STOP_BYTES_MAX + 1; bytes++) {
        (void)snprintf(fields, sizeof fields, ",\"stop\":\"%0*d\"", bytes, 0);
        CU_ASSERT(parse_fields(fields) == (bytes <= STOP_BYTES_MAX ? ERR_OK : ERR_BAD_FIELD));
        (void)snprintf(fields, sizeof fields, ",\"model\":\"%0*d\"", bytes - 1, 0);
        CU_ASSERT(parse_fields(fields) == (bytes <= MODEL_NAME_BYTES_MAX ? ERR_OK : ERR_BAD_FIELD));
    }
}

static void what_is_no_request_is_refused(void)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "{",
                                        "[]",
                                        "\"x\"",
                                        "5",
                                        "null",
                                        "{}",
                                        "{}x",
                                        "{\"messages\":[]}x",
                                        "\xef\xbb\xbf{}",
                                        "{\"messages\":null}",
                                        "{\"messages\":5}",
                                        "{\"messages\":[}",
                                        "{\"messages\"}",
                                        "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
                                        "{\"messages\":[{\"role\":\"user\",\"content\":\"\xc0\x80\"}]}"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        enum err err = parse_text(texts[i]);
        CU_ASSERT(err != ERR_OK && err_row(err)->status == 400);
    }
    CU_ASSERT(parse_fields("}") == ERR_BAD_JSON);
}

static void depth_is_bounded_everywhere(void)
{
    static char fields[65536];
    static const char *const before[] = {",\"x\":",          ",\"tools\":",           ",\"messages\":", ",\"stop\":",
                                         ",\"logit_bias\":", ",\"response_format\":", ",\"regex\":"};

    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        size_t length = (size_t)snprintf(fields, sizeof fields, "%s", before[i]);
        memset(fields + length, '[', 20000);
        memset(fields + length + 20000, ']', 20000);
        fields[length + 40000] = '\0';
        CU_ASSERT(parse_fields(fields) != ERR_OK);
    }
}

static void mutated_bodies_never_break_it(void)
{
    static const char good[] =
        "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"a\\u00e4\"}]},{"
        "\"role\":"
        "\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/"
        "png;base64,iVBORw0KGgo=\"}}]},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{}]}],\"stop\":[\"x\"],\"logit_bias\":{\"5\":1},"
        "\"seed\":3,"
        "\"stream\":true,\"stream_options\":{\"include_usage\":true},\"tools\":[1],\"top_p\":0.5}";
    char text[sizeof good];
    uint32_t random = 99;

    for (int round = 0; round < 30000; round++) {
        memcpy(text, good, sizeof good);
        size_t length = sizeof good - 1;
        for (int i = 0; i < 1 + round % 4; i++) {
            random = random * 1664525u + 1013904223u;
            text[(random >> 8) % length] = "\"{}[],:0\\nx\xff"[(random >> 3) % 12];
        }
        random = random * 1664525u + 1013904223u;
        length = round % 3 == 0 ? (random >> 8) % length : length;
        enum err err = parse_bytes(text, length);
        CU_ASSERT_FATAL(err == ERR_OK || (err_row(err)->status >= 400 && err_row(err)->status < 500));
        CU_ASSERT_FATAL(parsed.picture_count <= parse_rules.images_max && parse.part_count <= PARTS_MAX);
        CU_ASSERT_FATAL(isfinite(parsed.sampling.temperature) && isfinite(parsed.sampling.top_p));
    }
}

static void choices_are_as_many_as_run_at_once(void)
{
    CU_ASSERT(parse_fields("") == ERR_OK && parsed.choice_count == 1);
    CU_ASSERT(parse_fields(",\"n\":4") == ERR_OK && parsed.choice_count == 4);
    CU_ASSERT(parse_fields(",\"n\":5") == ERR_BAD_FIELD);
    CU_ASSERT_STRING_EQUAL(parsed.err_param, "n");
    CU_ASSERT_PTR_NOT_NULL(strstr(parsed.err_detail, "5 choices, at most 4 run at once"));
    CU_ASSERT(parse_fields(",\"n\":2147483647") == ERR_BAD_FIELD && parse_fields(",\"n\":2147483648") == ERR_BAD_FIELD);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(what_is_left_out_is_the_default),
        CASE(null_is_not_given),
        CASE(values_in_range_are_taken),
        CASE(values_out_of_range_are_refused_by_name),
        CASE(values_reach_their_places),
        CASE(the_last_of_equal_fields_counts),
        CASE(tools_stay_untouched),
        CASE(lists_are_bounded),
        CASE(what_is_no_request_is_refused),
        CASE(depth_is_bounded_everywhere),
        CASE(mutated_bodies_never_break_it),
        CASE(choices_are_as_many_as_run_at_once),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "http/chat_request", cases, NULL);
}
