/* fuzz_request: any body is a request within its documented ranges, or a refusal that says why. */
#include "engine/http/chat_request.h"
#include "tests/fuzz/fuzz.h"

static const struct chat_rules rules = {
    .vocab_size = 1088,
    .defaults = {.temperature = 1, .top_p = 1, .top_k = -1, .repetition_penalty = 1},
    .has_pictures = true,
    .has_tools = true,
    .image = {.patch = 14, .merge = 2, .min_pixels = 3136, .max_pixels = 1003520, .std = {1, 1, 1}},
    .max_source_pixels = 1000000,
    .images_max = 4,
    .choices_max = 4,
};

static void check_request(const struct chat_parse *parse, const struct request *request)
{
    const struct sampling_params *s = &request->sampling;

    fuzz_demand(s->temperature >= 0 && s->top_p > 0 && s->top_p <= 1 && s->min_p >= 0 && s->min_p <= 1, "ranges");
    fuzz_demand(s->top_k == -1 || s->top_k >= 1, "top_k");
    fuzz_demand(s->repetition_penalty > 0 && s->repetition_penalty <= 2, "repetition_penalty");
    fuzz_demand(s->frequency_penalty >= -2 && s->frequency_penalty <= 2, "frequency_penalty");
    fuzz_demand(s->presence_penalty >= -2 && s->presence_penalty <= 2, "presence_penalty");
    fuzz_demand(s->stop_id_count <= STOP_IDS_MAX && s->bias_count <= LOGIT_BIAS_MAX, "lists fit");
    for (uint32_t i = 0; i < s->bias_count; i++) {
        fuzz_demand(s->bias_ids[i] >= 0 && (uint32_t)s->bias_ids[i] < rules.vocab_size, "bias ids are in range");
    }
    fuzz_demand(request->stop_string_count <= STOP_STRINGS_MAX && request->picture_count <= 4, "lists fit");
    fuzz_demand(parse->chat.message_count > 0 && parse->chat.message_count <= MESSAGES_MAX, "messages");
    for (uint32_t i = 0; i < request->picture_count; i++) {
        const struct picture *picture = &request->pictures[i];
        fuzz_demand(picture->token_count > 0 && picture->width > 0 && picture->height > 0, "pictures have a size");
        fuzz_demand(picture->file >= request->body, "a picture lies in the body");
        fuzz_demand(picture->file + picture->file_bytes <= request->body + request->body_bytes, "and ends there");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct chat_parse *parse;
    static struct request *request;

    if (parse == NULL) {
        parse = fuzz_room(chat_parse_bytes());
        request = fuzz_room(sizeof *request);
    }
    request_open(request, 0, 1, 1, 1);
    request->body = fuzz_copy(data, bytes);
    request->body_bytes = bytes;
    enum err err = chat_request_parse(parse, request, &rules);
    fuzz_demand(err == request->err, "the refusal is recorded");
    if (err == ERR_OK) {
        check_request(parse, request);
    } else {
        fuzz_demand(memchr(request->err_detail, '\0', sizeof request->err_detail) != NULL, "the detail ends");
        fuzz_demand(memchr(request->err_param, '\0', sizeof request->err_param) != NULL, "the field's name ends");
        fuzz_demand(request->err_detail[0] != '\0', "a refusal says why");
    }
    free(request->body);
    return 0;
}
