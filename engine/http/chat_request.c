/* chat_request: the JSON body of POST /v1/chat/completions becomes a request.
 *
 * Always true: a field that has a row in chat_field_table.h is checked for type and range wherever it stands, so
 * nothing behind this file checks a client's value again. The last of several equal fields counts.
 */
#include "engine/http/chat_request.h"

#include "engine/http/chat_content.h"
#include "engine/http/field.h"
#include "engine/image/picture_file.h"

#include <assert.h>
#include <float.h>
#include <string.h>

enum { MODEL_DEFAULT_BYTES = 7 };

uint64_t chat_parse_bytes(void)
{
    return sizeof(struct chat_parse);
}

static enum err read_messages(struct chat_reader *reader)
{
    reader->parse->has_messages = true;
    return chat_content_read(reader);
}

static enum err read_model(struct chat_reader *reader)
{
    struct json_event event;
    enum err err = field_next(&reader->field, &event);

    if (err != ERR_OK || event.kind == JSON_NULL) {
        return err;
    }
    if (event.kind != JSON_STRING || event.bytes >= MODEL_NAME_BYTES_MAX ||
        memchr(event.text, 0, event.bytes) != NULL) {
        return field_refuse(&reader->field, "model", "a string of less than 256 bytes");
    }
    _Static_assert(MODEL_NAME_BYTES_MAX == 256, "the message above");
    memcpy(reader->request->model, event.text, event.bytes);
    reader->request->model[event.bytes] = '\0';
    return ERR_OK;
}

/* An object of switches: each known one goes to its place, others are ignored; null is an empty one. */
struct switch_row {
    const char *key, *name;
    bool *value;
};

static enum err read_switches(struct chat_reader *reader, const char *name, const struct switch_row *rows)
{
    struct json_event event;
    enum err err = field_next(&reader->field, &event);

    if (err != ERR_OK || event.kind == JSON_NULL) {
        return err;
    }
    err = field_expect(&reader->field, &event, name, JSON_OBJECT_BEGIN);
    while (err == ERR_OK && (err = field_next(&reader->field, &event)) == ERR_OK && event.kind == JSON_KEY) {
        const struct switch_row *row = rows;
        while (row->key != NULL && !json_event_is(&event, row->key)) {
            row++;
        }
        if (row->key == NULL) {
            err = field_skip(&reader->field);
        } else if ((err = field_next(&reader->field, &event)) == ERR_OK && event.kind != JSON_NULL) {
            err = field_switch(&reader->field, &event, row->name, row->value);
        }
    }
    return err;
}

static enum err read_stream_options(struct chat_reader *reader)
{
    struct request *r = reader->request;
    const struct switch_row rows[] = {
        {"include_usage", "stream_options.include_usage", &r->wants_usage},
        {"continuous_usage_stats", "stream_options.continuous_usage_stats", &r->wants_continuous_usage},
        {NULL, NULL, NULL},
    };

    r->wants_usage = r->wants_continuous_usage = false;
    return read_switches(reader, "stream_options", rows);
}

static enum err read_template_kwargs(struct chat_reader *reader)
{
    const struct switch_row rows[] = {
        {"add_vision_id", "chat_template_kwargs.add_vision_id", &reader->parse->chat.adds_vision_id},
        {NULL, NULL, NULL},
    };

    reader->parse->chat.adds_vision_id = false;
    return read_switches(reader, "chat_template_kwargs", rows);
}

static enum err add_stop(struct chat_reader *reader, const struct json_event *event)
{
    struct request *r = reader->request;

    if (event->kind != JSON_STRING) {
        return field_refuse(&reader->field, "stop", "a string or a list of strings");
    }
    if (event->bytes == 0) {
        return ERR_OK; /* stops nowhere */
    }
    if (event->bytes > STOP_BYTES_MAX || r->stop_string_count == STOP_STRINGS_MAX) {
        return request_refuse(r, ERR_BAD_FIELD, "stop", "stop: at most %d strings of at most %d bytes",
                              STOP_STRINGS_MAX, STOP_BYTES_MAX);
    }
    struct stop_string *stop = &r->stop_strings[r->stop_string_count++];
    stop->bytes = (uint16_t)event->bytes;
    memcpy(stop->text, event->text, event->bytes);
    return ERR_OK;
}

static enum err read_stop(struct chat_reader *reader)
{
    struct json_event event;
    enum err err = field_next(&reader->field, &event);

    reader->request->stop_string_count = 0;
    if (err != ERR_OK || event.kind == JSON_NULL) {
        return err;
    }
    if (event.kind != JSON_ARRAY_BEGIN) {
        return add_stop(reader, &event);
    }
    while ((err = field_next(&reader->field, &event)) == ERR_OK && event.kind != JSON_ARRAY_END) {
        err = add_stop(reader, &event);
        if (err != ERR_OK) {
            return err;
        }
    }
    return err;
}

static enum err read_stop_token_ids(struct chat_reader *reader)
{
    struct sampling_params *s = &reader->request->sampling;
    struct json_event event;
    enum err err = field_next(&reader->field, &event);
    int64_t id = 0;

    s->stop_id_count = 0;
    if (err != ERR_OK || event.kind == JSON_NULL) {
        return err;
    }
    err = field_expect(&reader->field, &event, "stop_token_ids", JSON_ARRAY_BEGIN);
    while (err == ERR_OK && (err = field_next(&reader->field, &event)) == ERR_OK && event.kind != JSON_ARRAY_END) {
        err = field_whole(&reader->field, &event, "stop_token_ids", 0, (int64_t)reader->rules->vocab_size - 1,
                          "a list of token ids of the vocabulary", &id);
        if (err == ERR_OK && s->stop_id_count == STOP_IDS_MAX) {
            return request_refuse(reader->request, ERR_BAD_FIELD, "stop_token_ids", "stop_token_ids: at most %d ids",
                                  STOP_IDS_MAX);
        }
        if (err == ERR_OK) {
            s->stop_ids[s->stop_id_count++] = (int32_t)id;
        }
    }
    return err;
}

static enum err add_bias(struct chat_reader *reader, const struct json_event *key)
{
    struct sampling_params *s = &reader->request->sampling;
    struct json_event event;
    int64_t id = 0;
    float value = 0;

    bool is_id = key->bytes > 0 && key->bytes <= 10;
    for (size_t i = 0; is_id && i < key->bytes; i++) {
        is_id = key->text[i] >= '0' && key->text[i] <= '9';
        id = id * 10 + (key->text[i] - '0');
    }
    if (!is_id || id >= (int64_t)reader->rules->vocab_size) {
        return field_refuse(&reader->field, "logit_bias", "an object whose keys are token ids of the vocabulary");
    }
    enum err err = field_next(&reader->field, &event);
    if (err == ERR_OK) {
        err = field_number(&reader->field, &event, "logit_bias", -100, 100, false, "an object of values in [-100, 100]",
                           &value);
    }
    if (err != ERR_OK) {
        return err;
    }
    uint32_t i = 0;
    while (i < s->bias_count && s->bias_ids[i] != (int32_t)id) {
        i++;
    }
    if (i == LOGIT_BIAS_MAX) {
        return request_refuse(reader->request, ERR_BAD_FIELD, "logit_bias", "logit_bias: at most %d entries",
                              LOGIT_BIAS_MAX);
    }
    s->bias_ids[i] = (int32_t)id;
    s->bias_values[i] = value;
    s->bias_count += i == s->bias_count ? 1 : 0;
    return ERR_OK;
}

static enum err read_logit_bias(struct chat_reader *reader)
{
    struct json_event event;
    enum err err = field_next(&reader->field, &event);

    reader->request->sampling.bias_count = 0;
    if (err != ERR_OK || event.kind == JSON_NULL) {
        return err;
    }
    err = field_expect(&reader->field, &event, "logit_bias", JSON_OBJECT_BEGIN);
    while (err == ERR_OK && (err = field_next(&reader->field, &event)) == ERR_OK && event.kind == JSON_KEY) {
        err = add_bias(reader, &event);
    }
    return err;
}

static enum err read_tools(struct chat_reader *reader)
{
    struct json_span span;
    enum err err = json_skip_raw(&reader->field.json, &span);

    reader->parse->chat.tools = (struct json_span){NULL, 0};
    if (err != ERR_OK) {
        return field_skip(&reader->field); /* the same error again, worded */
    }
    if (span.bytes[0] == 'n') {
        return ERR_OK;
    }
    if (span.bytes[0] != '[') {
        return field_refuse(&reader->field, "tools", "a list");
    }
    size_t at = 1;
    while (strchr(" \t\r\n", span.bytes[at]) != NULL) {
        at++;
    }
    if (span.bytes[at] != ']') {
        reader->parse->chat.tools = span;
    }
    return ERR_OK;
}

static enum err read_tool_choice(struct chat_reader *reader)
{
    struct json_event event;
    enum err err = field_next(&reader->field, &event);

    reader->parse->refuses_tools = false;
    if (err != ERR_OK || event.kind == JSON_NULL) {
        return err;
    }
    if (event.kind == JSON_STRING && (json_event_is(&event, "auto") || json_event_is(&event, "none"))) {
        reader->parse->refuses_tools = json_event_is(&event, "none");
        return ERR_OK;
    }
    bool is_forced =
        event.kind == JSON_OBJECT_BEGIN || (event.kind == JSON_STRING && json_event_is(&event, "required"));
    if (is_forced) {
        return request_refuse(reader->request, ERR_UNSUPPORTED, "tool_choice",
                              "tool_choice: a forced call needs a grammar; send \"auto\" or \"none\"");
    }
    return field_refuse(&reader->field, "tool_choice", "\"auto\" or \"none\"");
}

static enum err read_response_format(struct chat_reader *reader)
{
    struct json_event event;
    enum err err = field_next(&reader->field, &event);
    bool is_text = true;

    if (err != ERR_OK || event.kind == JSON_NULL) {
        return err;
    }
    err = field_expect(&reader->field, &event, "response_format", JSON_OBJECT_BEGIN);
    while (err == ERR_OK && (err = field_next(&reader->field, &event)) == ERR_OK && event.kind == JSON_KEY) {
        if (!json_event_is(&event, "type")) {
            err = field_skip(&reader->field);
        } else if ((err = field_next(&reader->field, &event)) == ERR_OK) {
            err = field_expect(&reader->field, &event, "response_format.type", JSON_STRING);
            is_text = err == ERR_OK && json_event_is(&event, "text");
        }
    }
    if (err == ERR_OK && !is_text) {
        return request_refuse(reader->request, ERR_UNSUPPORTED, "response_format",
                              "response_format: only {\"type\": \"text\"}; grammars are not supported");
    }
    return err;
}

/* null, false and 0 ask for nothing. */
static enum err read_refused(struct chat_reader *reader, const char *name, const char *why)
{
    struct json_span span;
    enum err err = json_skip_raw(&reader->field.json, &span);

    if (err != ERR_OK) {
        return field_skip(&reader->field); /* the same error again, worded */
    }
    if (span.bytes[0] == 'n' || span.bytes[0] == 'f' || (span.length == 1 && span.bytes[0] == '0')) {
        return ERR_OK;
    }
    return request_refuse(reader->request, ERR_UNSUPPORTED, name, "%s: %s", name, why);
}

/* The value of the field `key`, by its row. */
static enum err read_field(struct chat_reader *reader, const struct json_event *key)
{
    struct request *r = reader->request;
    struct chat_parse *p = reader->parse;
    struct json_event event;
    enum err err;

#define FIELD_OWN(name, function)                                                                                      \
    if (json_event_is(key, name)) {                                                                                    \
        return function(reader);                                                                                       \
    }
#define FIELD_REFUSED(name, why)                                                                                       \
    if (json_event_is(key, name)) {                                                                                    \
        return read_refused(reader, name, why);                                                                        \
    }
#define FIELD_VALUE(name, call)                                                                                        \
    if (json_event_is(key, name)) {                                                                                    \
        err = field_next(&reader->field, &event);                                                                      \
        return err != ERR_OK || event.kind == JSON_NULL ? err : (call);                                                \
    }
#define FIELD_NUMBER(name, place, minimum, maximum, is_open, range)                                                    \
    FIELD_VALUE(name, field_number(&reader->field, &event, name, minimum, (double)(maximum), is_open, range, &place))
#define FIELD_WHOLE(name, place, minimum, maximum, range)                                                              \
    FIELD_VALUE(name, field_whole(&reader->field, &event, name, minimum, maximum, range, &place))
#define FIELD_SWITCH(name, place) FIELD_VALUE(name, field_switch(&reader->field, &event, name, &place))
#include "engine/http/chat_field_table.h"
#undef FIELD_VALUE
    return field_skip(&reader->field);
}

static void set_defaults(struct chat_parse *parse, struct request *request, const struct chat_rules *rules)
{
    memset(parse, 0, offsetof(struct chat_parse, messages));
    parse->chat.messages = parse->messages;
    parse->chat.adds_generation_prompt = true;
    parse->chat.parses_arguments = true;
    parse->chat.joins_text_parts = true;
    parse->chat.allows_special_in_text = rules->allows_special_in_text;
    parse->seed = INT64_MIN;
    parse->top_k = rules->defaults.top_k;
    parse->choices = 1;
    request->sampling = rules->defaults;
    request->skip_special_tokens = true;
    memcpy(request->model, "default", MODEL_DEFAULT_BYTES + 1);
}

static enum err refuse_unsupported(struct request *request, const char *name, const char *why)
{
    return request_refuse(request, ERR_UNSUPPORTED, name, "%s: %s", name, why);
}

/* What only all fields together can tell. */
static enum err finish(struct chat_reader *reader)
{
    struct chat_parse *p = reader->parse;
    struct request *r = reader->request;
    const struct chat_rules *rules = reader->rules;
    uint32_t images_max = rules->images_max < IMAGES_MAX ? rules->images_max : IMAGES_MAX;

    if (!p->has_messages || p->chat.message_count == 0) {
        return field_refuse(&reader->field, "messages", "a list of at least one message");
    }
    if (reader->picture_count > images_max) {
        return request_refuse(r, ERR_TOO_MANY_IMAGES, "messages", "%u images, at most %u a request",
                              reader->picture_count, images_max);
    }
    if (p->top_k == 0) {
        return field_refuse(&reader->field, "top_k", "-1 or at least 1");
    }
    if (p->choices > (int64_t)rules->choices_max) {
        return request_refuse(r, ERR_BAD_FIELD, "n", "n: %lld choices, at most %u run at once (--max-running-requests)",
                              (long long)p->choices, rules->choices_max);
    }
    if (p->wants_logprobs || p->top_logprobs > 0) {
        return refuse_unsupported(r, p->wants_logprobs ? "logprobs" : "top_logprobs",
                                  "log probabilities are not returned");
    }
    if (p->refuses_tools) {
        p->chat.tools = (struct json_span){NULL, 0};
    }
    if (p->chat.tools.length > 0 && !rules->has_tools) {
        return refuse_unsupported(r, "tools", "the model's chat template takes none");
    }
    p->limit_tokens = (uint32_t)(p->max_completion_tokens > 0 ? p->max_completion_tokens : p->max_tokens);
    if (p->limit_tokens > 0 && p->min_tokens > (int64_t)p->limit_tokens) {
        return field_refuse(&reader->field, "min_tokens", "at most max_tokens");
    }
    r->sampling.top_k = (int32_t)p->top_k;
    r->sampling.min_tokens = (uint32_t)p->min_tokens;
    r->choice_count = (uint32_t)p->choices;
    p->has_seed = p->seed != INT64_MIN;
    r->sampling.seed = (uint64_t)p->seed;
    return ERR_OK;
}

enum err chat_request_parse(struct chat_parse *parse, struct request *request, const struct chat_rules *rules)
{
    struct chat_reader reader = {.parse = parse, .request = request, .rules = rules, .field = {.request = request}};
    struct json_event event;

    assert(request->body != NULL);
    assert(rules->vocab_size > 0);
    set_defaults(parse, request, rules);
    json_open(&reader.field.json, (char *)request->body, request->body_bytes);
    enum err err = field_next(&reader.field, &event);
    if (err == ERR_OK && event.kind != JSON_OBJECT_BEGIN) {
        return request_refuse(request, ERR_BAD_JSON, "", "the body must be an object");
    }
    while (err == ERR_OK && (err = field_next(&reader.field, &event)) == ERR_OK && event.kind == JSON_KEY) {
        err = read_field(&reader, &event);
    }
    if (err == ERR_OK) {
        err = field_next(&reader.field, &event); /* nothing may follow */
    }
    if (err == ERR_OK) {
        err = finish(&reader);
    }
    for (uint32_t i = 0; err == ERR_OK && i < request->picture_count; i++) {
        struct picture *picture = &request->pictures[i];
        picture_file_digest(picture->file, picture->file_bytes, &rules->image, picture->digest);
    }
    return err;
}
