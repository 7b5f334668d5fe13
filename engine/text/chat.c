/* chat: messages into the text, and the ids, that the checkpoint's chat template makes of them.
 *
 * Nothing is kept between calls. A template is known by the SHA-256 of its text and described by a row of traits; one
 * function writes them all, because Qwen's templates differ in what they leave out, not in what they write.
 */
#include "engine/text/chat.h"

#include "engine/text/python_json.h"

#include <assert.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

struct chat_template {
    const char *name;
    const char *digest;         /* SHA-256 of the template's text, hexadecimal */
    const char *default_system; /* said if the first message is not a system message */
    bool takes_tools;           /* knows `tools`, tool_calls and the role "tool" */
    bool takes_parts;           /* content may be a list, pictures among it */
    bool numbers_pictures;      /* knows add_vision_id */
    bool drops_other_roles;     /* leaves out messages of a role that it does not know */
};

static const struct chat_template templates[] = {
    {"Qwen2.5-VL", "a0bc6f6fc7a29a80017a433e8f03a1cc1236e838a944a2d034295a60c4f2fddb", "You are a helpful assistant.",
     .takes_parts = true, .numbers_pictures = true},
    {"Qwen2.5-VL with tools", "44d5f08f3f72b837eaad09f13a54c1f9f4eb58d75240334548b7fd52a5437fa5",
     "You are a helpful assistant.", .takes_tools = true, .drops_other_roles = true},
    {"Qwen2.5", "cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f",
     "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", .takes_tools = true,
     .drops_other_roles = true},
    {"ashlar-demo", "1137c1c9271cc57d2a2ee620621587a39ce1d568877bf5de33d83015759f5d9c", "You are a helpful assistant.",
     .takes_tools = true, .takes_parts = true},
};

enum {
    TEMPLATE_COUNT = sizeof templates / sizeof templates[0],
    TEMPLATE_BYTES_MAX = 8192, /* longer texts are none of these */
    ALIGNMENT = 8,
};

static const char tools_head[] = "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
                                 "You are provided with function signatures within <tools></tools> XML tags:\n<tools>";
static const char tools_tail[] =
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n"
    "</tool_call><|im_end|>\n";

/* Finding the template. */

static void digest_of(const char *text, size_t bytes, char hex[2 * SHA256_DIGEST_SIZE + 1])
{
    unsigned char sum[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, bytes, (const uint8_t *)text);
    sha256_digest(&context, sizeof sum, sum);
    for (size_t i = 0; i < sizeof sum; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned int)sum[i]);
    }
}

const struct chat_template *chat_find(const char *text, size_t bytes)
{
    char hex[2 * SHA256_DIGEST_SIZE + 1];
    digest_of(text, bytes, hex);
    for (size_t i = 0; i < TEMPLATE_COUNT; i++) {
        if (strcmp(templates[i].digest, hex) == 0) {
            return &templates[i];
        }
    }
    return NULL;
}

/* The string under "chat_template" in a JSON file, unescaped into `text`. Returns its bytes; 0: there is none;
 * TEMPLATE_BYTES_MAX + 1: there is one, but too long, not a string, or not JSON. */
static size_t template_in_json(struct json_span file, char text[TEMPLATE_BYTES_MAX])
{
    struct json_reader reader;
    struct json_event event;
    json_open_raw(&reader, file.bytes, file.length);
    if (json_next(&reader, &event) != ERR_OK || event.kind != JSON_OBJECT_BEGIN) {
        return TEMPLATE_BYTES_MAX + 1;
    }
    while (json_next(&reader, &event) == ERR_OK && event.kind == JSON_KEY) {
        if (json_event_is(&event, "chat_template")) {
            if (json_next(&reader, &event) != ERR_OK || event.kind != JSON_STRING || event.bytes > TEMPLATE_BYTES_MAX) {
                return TEMPLATE_BYTES_MAX + 1;
            }
            return json_unescape(event.text, event.bytes, text);
        }
        if (json_skip(&reader) != ERR_OK) {
            break;
        }
    }
    return reader.err == ERR_OK ? 0 : TEMPLATE_BYTES_MAX + 1;
}

const struct chat_template *chat_open(const struct chat_files *files, char *detail)
{
    const char *name = "chat_template.json";
    char text[TEMPLATE_BYTES_MAX];
    char hex[2 * SHA256_DIGEST_SIZE + 1] = "-";
    size_t bytes = 0;
    const struct chat_template *found = NULL;

    if (files->chat_template_json.bytes != NULL) {
        bytes = template_in_json(files->chat_template_json, text);
    }
    if (bytes == 0 && files->chat_template_jinja.bytes != NULL) {
        name = "chat_template.jinja";
        bytes = files->chat_template_jinja.length;
        if (bytes <= TEMPLATE_BYTES_MAX) {
            memcpy(text, files->chat_template_jinja.bytes, bytes);
        }
    }
    if (bytes == 0 && files->tokenizer_config_json.bytes != NULL) {
        name = "tokenizer_config.json";
        bytes = template_in_json(files->tokenizer_config_json, text);
    }
    if (bytes > 0 && bytes <= TEMPLATE_BYTES_MAX) {
        digest_of(text, bytes, hex);
        found = chat_find(text, bytes);
    }
    if (found == NULL && bytes == 0) {
        (void)snprintf(detail, ERROR_DETAIL_BYTES_MAX, "no file has a chat template");
    } else if (bytes > TEMPLATE_BYTES_MAX) {
        (void)snprintf(detail, ERROR_DETAIL_BYTES_MAX, "%s: damaged, or its chat template is longer than %d bytes",
                       name, TEMPLATE_BYTES_MAX);
    } else if (found == NULL) {
        int length =
            snprintf(detail, ERROR_DETAIL_BYTES_MAX,
                     "%s: the chat template (%zu bytes, SHA-256 %s) is not one of the known ones:", name, bytes, hex);
        for (size_t i = 0; i < TEMPLATE_COUNT && length < ERROR_DETAIL_BYTES_MAX; i++) {
            length += snprintf(detail + length, (size_t)(ERROR_DETAIL_BYTES_MAX - length), " %s%s", templates[i].name,
                               i + 1 < TEMPLATE_COUNT ? "," : "");
        }
    }
    return found;
}

const char *chat_name(const struct chat_template *chat)
{
    return chat->name;
}

bool chat_takes_pictures(const struct chat_template *chat)
{
    return chat->takes_parts;
}

bool chat_takes_tools(const struct chat_template *chat)
{
    return chat->takes_tools;
}

/* Rendering. */

struct rendering {
    const struct chat_template *chat;
    const struct chat_request *request;
    struct prompt *prompt;
    struct chat_fault *fault;
    size_t index;         /* of the message being written */
    size_t picture_count; /* so far */
    size_t video_count;
    bool shows_tools;
};

static enum err refuse(struct rendering *r, enum err err, const char *reason)
{
    assert(err != ERR_OK);
    *r->fault = (struct chat_fault){r->index, reason};
    return err;
}

static bool is_role(const struct chat_message *message, const char *role)
{
    return message->role.length == strlen(role) && memcmp(message->role.bytes, role, message->role.length) == 0;
}

static void put_span(struct rendering *r, struct json_span span)
{
    prompt_user(r->prompt, span.bytes, span.length);
}

static void put_role(struct rendering *r, const struct chat_message *message)
{
    static const char *const known[] = {"system", "user", "assistant", "tool"};
    prompt_template(r->prompt, "<|im_start|>");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (is_role(message, known[i])) {
            prompt_template(r->prompt, known[i]);
            return;
        }
    }
    put_span(r, message->role);
}

/* Jinja's truth of message.content. */
static bool has_content(const struct chat_message *message)
{
    return message->content == CHAT_STRING_CONTENT ? message->parts[0].text.length > 0
                                                   : message->content == CHAT_LIST_CONTENT && message->part_count > 0;
}

static void put_vision(struct rendering *r, enum chat_part_kind kind)
{
    bool is_picture = kind == CHAT_PICTURE;
    size_t number = is_picture ? ++r->picture_count : ++r->video_count;
    if (r->request->adds_vision_id && r->chat->numbers_pictures) {
        char text[48];
        (void)snprintf(text, sizeof text, "%s %zu: ", is_picture ? "Picture" : "Video", number);
        prompt_template(r->prompt, text);
    }
    prompt_template(r->prompt, "<|vision_start|>");
    prompt_template(r->prompt, is_picture ? "<|image_pad|>" : "<|video_pad|>");
    prompt_template(r->prompt, "<|vision_end|>");
}

/* A list of parts, pictures where they stand. */
static void put_parts(struct rendering *r, const struct chat_message *message)
{
    for (size_t i = 0; i < message->part_count; i++) {
        const struct chat_part *part = &message->parts[i];
        if (part->kind == CHAT_TEXT) {
            put_span(r, part->text);
        } else {
            put_vision(r, part->kind);
        }
    }
}

/* A list of text parts for a template that wants a string. */
static enum err put_joined(struct rendering *r, const struct chat_message *message)
{
    for (size_t i = 0; i < message->part_count; i++) {
        if (message->parts[i].kind != CHAT_TEXT) {
            return refuse(r, ERR_BAD_FIELD, "this model's chat template takes no pictures");
        }
        prompt_user(r->prompt, " ", i > 0 ? 1 : 0);
        put_span(r, message->parts[i].text);
    }
    return ERR_OK;
}

/* message.content, in a place where the template adds it to a string: it must be one, or parts that it knows. */
static enum err put_content(struct rendering *r, const struct chat_message *message)
{
    if (message->content == CHAT_STRING_CONTENT || r->chat->takes_parts) {
        put_parts(r, message);
        return ERR_OK;
    }
    if (message->content == CHAT_NO_CONTENT) {
        return refuse(r, ERR_BAD_FIELD, "this model's chat template needs a content");
    }
    if (!r->request->joins_text_parts) {
        return refuse(r, ERR_BAD_FIELD, "this model's chat template takes a string, not a list");
    }
    return put_joined(r, message);
}

/* message.content, in a place where the template prints it, so that anything goes. */
static enum err print_content(struct rendering *r, const struct chat_message *message)
{
    if (message->content == CHAT_NO_CONTENT) {
        return ERR_OK;
    }
    if (message->content == CHAT_LIST_CONTENT && !r->chat->takes_parts && !r->request->joins_text_parts) {
        enum err err = python_json_put(r->prompt, message->list_json, PYTHON_STR);
        return err == ERR_OK ? ERR_OK : refuse(r, err, "content");
    }
    return put_content(r, message);
}

/* The members of a tool call that templates look at, as raw JSON; length 0: absent. */
struct call {
    struct json_span function, name, arguments;
};

/* Reads an object's members. The object is valid JSON. */
static struct call read_call(struct json_span object)
{
    struct call call = {.function = {NULL, 0}};
    struct json_reader reader;
    struct json_event event;
    json_open_raw(&reader, object.bytes, object.length);
    enum err err = json_next(&reader, &event);
    while (err == ERR_OK && event.kind != JSON_OBJECT_END && event.kind != JSON_END) {
        err = json_next(&reader, &event);
        if (err == ERR_OK && event.kind == JSON_KEY) {
            struct json_span value;
            bool is_function = json_event_is(&event, "function");
            bool is_name = json_event_is(&event, "name");
            bool is_arguments = json_event_is(&event, "arguments");
            err = json_skip_raw(&reader, &value);
            call.function = is_function ? value : call.function;
            call.name = is_name ? value : call.name;
            call.arguments = is_arguments ? value : call.arguments;
        }
    }
    return call;
}

static bool is_string(struct json_span value)
{
    return value.length > 0 && value.bytes[0] == '"';
}

/* The inside of a raw JSON string, unescaped, as the client's text. */
static void put_string_value(struct rendering *r, struct json_span value)
{
    assert(is_string(value) && value.length >= 2);
    for (size_t at = 0; at < value.length - 2;) {
        char piece[256];
        size_t bytes = json_unescape_some(value.bytes + 1, value.length - 2, &at, piece, sizeof piece);
        prompt_user(r->prompt, piece, bytes);
    }
}

/* Arguments that are a string hold JSON: it is unescaped into the free end of the prompt's buffer, read there, and
 * written before it. What is written may be longer than what is read, so it is unescaped at the very end. */
static enum err put_parsed_arguments(struct rendering *r, struct json_span value)
{
    struct prompt *prompt = r->prompt;
    size_t room = prompt->capacity - prompt->length;
    if (value.length > room) {
        prompt->has_overflowed = true;
        return ERR_OK;
    }
    char *copy = prompt->text + prompt->capacity - value.length;
    struct json_span inner = {copy, json_unescape(value.bytes + 1, value.length - 2, copy)};
    size_t capacity = prompt->capacity;
    prompt->capacity -= value.length;
    enum err err = python_json_put(prompt, inner, PYTHON_TOJSON);
    prompt->capacity = capacity;
    return err == ERR_OK ? ERR_OK : refuse(r, ERR_BAD_FIELD, "arguments of a tool call are not JSON");
}

static enum err put_call(struct rendering *r, struct json_span object)
{
    struct call call = read_call(object);
    if (call.function.length > 0) {
        call = read_call(call.function);
    }
    if (call.name.length > 0 && !is_string(call.name)) {
        return refuse(r, ERR_BAD_FIELD, "the name of a tool call is not a string");
    }
    if (call.arguments.length == 0) {
        return refuse(r, ERR_BAD_FIELD, "a tool call without arguments");
    }
    prompt_template(r->prompt, "\n<tool_call>\n{\"name\": \"");
    if (call.name.length > 0) {
        put_string_value(r, call.name);
    }
    prompt_template(r->prompt, "\", \"arguments\": ");
    enum err err = r->request->parses_arguments && is_string(call.arguments)
                       ? put_parsed_arguments(r, call.arguments)
                       : python_json_put(r->prompt, call.arguments, PYTHON_TOJSON);
    prompt_template(r->prompt, "}\n</tool_call>");
    return err;
}

/* Calls `put` for each item of an array. */
static enum err for_each(struct rendering *r, struct json_span array,
                         enum err (*put)(struct rendering *r, struct json_span item))
{
    struct json_reader reader;
    struct json_event event;
    json_open_raw(&reader, array.bytes, array.length);
    enum err err = json_next(&reader, &event);
    if (err == ERR_OK && event.kind != JSON_ARRAY_BEGIN) {
        return refuse(r, ERR_BAD_FIELD, "not a list");
    }
    while (err == ERR_OK) {
        struct json_span item;
        err = json_next(&reader, &event);
        if (err != ERR_OK || event.kind == JSON_ARRAY_END) {
            break;
        }
        if (event.kind != JSON_OBJECT_BEGIN) {
            return refuse(r, ERR_BAD_FIELD, "an item is not an object");
        }
        err = json_skip_raw(&reader, &item);
        err = err == ERR_OK ? put(r, item) : err;
    }
    return err == ERR_BAD_JSON || err == ERR_TOO_DEEP ? refuse(r, err, "not JSON") : err;
}

/* True for an array with something in it. */
static bool has_items(struct json_span array)
{
    struct json_reader reader;
    struct json_event event;
    json_open_raw(&reader, array.bytes, array.length);
    return array.length > 0 && (json_next(&reader, &event) != ERR_OK || event.kind != JSON_ARRAY_BEGIN ||
                                json_next(&reader, &event) != ERR_OK || event.kind != JSON_ARRAY_END);
}

static enum err put_tool(struct rendering *r, struct json_span tool)
{
    prompt_template(r->prompt, "\n");
    return python_json_put(r->prompt, tool, PYTHON_TOJSON);
}

/* The system message that shows the tools, around what the client's own one says. */
static enum err put_tools(struct rendering *r)
{
    const struct chat_message *first = &r->request->messages[0];
    enum err err = ERR_OK;
    prompt_template(r->prompt, "<|im_start|>system\n");
    if (is_role(first, "system")) {
        err = print_content(r, first);
    } else {
        prompt_template(r->prompt, r->chat->default_system);
    }
    if (err != ERR_OK) {
        return err;
    }
    prompt_template(r->prompt, tools_head);
    r->index = r->request->message_count;
    err = for_each(r, r->request->tools, put_tool);
    prompt_template(r->prompt, tools_tail);
    return err;
}

static enum err put_assistant_calls(struct rendering *r, const struct chat_message *message)
{
    enum err err = ERR_OK;
    prompt_template(r->prompt, "<|im_start|>assistant");
    if (has_content(message)) {
        prompt_template(r->prompt, "\n");
        err = put_content(r, message);
    }
    if (err == ERR_OK) {
        err = for_each(r, message->tool_calls, put_call);
    }
    prompt_template(r->prompt, "<|im_end|>\n");
    return err;
}

/* The results of tools that follow each other share one user message. */
static enum err put_tool_result(struct rendering *r, const struct chat_message *message)
{
    bool is_first = r->index == 0 || !is_role(message - 1, "tool");
    bool is_last = r->index + 1 == r->request->message_count || !is_role(message + 1, "tool");
    prompt_template(r->prompt, is_first ? "<|im_start|>user" : "");
    prompt_template(r->prompt, "\n<tool_response>\n");
    enum err err = print_content(r, message);
    prompt_template(r->prompt, "\n</tool_response>");
    prompt_template(r->prompt, is_last ? "<|im_end|>\n" : "");
    return err;
}

static enum err put_message(struct rendering *r)
{
    const struct chat_message *message = &r->request->messages[r->index];
    if (r->shows_tools && r->index == 0 && is_role(message, "system")) {
        return ERR_OK; /* said above the tools */
    }
    if (r->chat->takes_tools && is_role(message, "assistant") && has_items(message->tool_calls)) {
        return put_assistant_calls(r, message);
    }
    if (r->chat->takes_tools && is_role(message, "tool")) {
        return put_tool_result(r, message);
    }
    if (r->chat->drops_other_roles && !is_role(message, "system") && !is_role(message, "user") &&
        !is_role(message, "assistant")) {
        return ERR_OK;
    }
    put_role(r, message);
    prompt_template(r->prompt, "\n");
    enum err err = put_content(r, message);
    prompt_template(r->prompt, "<|im_end|>\n");
    return err;
}

enum err chat_render(const struct chat_template *chat, const struct chat_request *request, struct prompt *prompt,
                     struct chat_fault *fault)
{
    struct rendering r = {.chat = chat, .request = request, .prompt = prompt, .fault = fault};
    enum err err = ERR_OK;
    *fault = (struct chat_fault){0, ""};
    if (request->message_count == 0) {
        return refuse(&r, ERR_BAD_FIELD, "no messages");
    }
    r.shows_tools = chat->takes_tools && has_items(request->tools);
    if (r.shows_tools) {
        err = put_tools(&r);
    } else if (!is_role(&request->messages[0], "system")) {
        prompt_template(prompt, "<|im_start|>system\n");
        prompt_template(prompt, chat->default_system);
        prompt_template(prompt, "<|im_end|>\n");
    }
    for (r.index = 0; err == ERR_OK && r.index < request->message_count; r.index++) {
        err = put_message(&r);
    }
    if (err != ERR_OK) {
        return err;
    }
    prompt_template(prompt, request->adds_generation_prompt ? "<|im_start|>assistant\n" : "");
    if (prompt->has_overflowed) {
        return refuse(&r, ERR_TOO_DEEP, "the prompt is too long");
    }
    if (request->allows_special_in_text) {
        prompt_allow_all(prompt);
    }
    return ERR_OK;
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t ranges_bytes(void)
{
    return aligned(PROMPT_RANGES_MAX * sizeof(struct text_range));
}

size_t chat_scratch_bytes(size_t text_bytes)
{
    return ranges_bytes() + aligned(text_bytes) + tokenizer_scratch_bytes(text_bytes);
}

enum err chat_encode(const struct chat_template *chat, const struct chat_request *request,
                     const struct tokenizer *tokenizer, int32_t *ids, size_t capacity, void *scratch,
                     size_t scratch_bytes, size_t *count, struct chat_fault *fault)
{
    struct prompt prompt;
    char *text = (char *)scratch + ranges_bytes();
    size_t slope = chat_scratch_bytes(ALIGNMENT) - chat_scratch_bytes(0);
    assert((uintptr_t)scratch % ALIGNMENT == 0 && scratch_bytes >= chat_scratch_bytes(0));
    size_t text_bytes = (scratch_bytes - chat_scratch_bytes(0)) / slope * ALIGNMENT;
    char *rest = text + text_bytes;

    prompt_open(&prompt, text, text_bytes, scratch, PROMPT_RANGES_MAX);
    *count = 0;
    enum err err = chat_render(chat, request, &prompt, fault);
    if (err != ERR_OK) {
        return err;
    }
    return tokenizer_encode(tokenizer, text, prompt.length, prompt.ranges, prompt.range_count, ids, capacity, rest,
                            scratch_bytes - (size_t)(rest - (char *)scratch), count);
}
