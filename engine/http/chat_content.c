/* chat_content: the `messages` of a chat request: roles, texts, pictures.
 *
 * Always true between two messages: the parts of message i are the last part_count - first ones of parse->parts, and
 * request->pictures are those of the picture parts, in their order. A value given twice replaces the first, wholly.
 */
#include "engine/http/chat_content.h"

#include "engine/image/data_url.h"
#include "engine/image/sniff.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FIELD_PATH_BYTES_MAX = 64 };

/* One content part as it was read; the order of its keys is the client's. */
struct part {
    uint32_t message_index, index;
    bool has_type, has_text, has_url;
    struct json_event type, text, url;
};

static bool is_one_of(const struct json_event *event, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (json_event_is(event, *names)) {
            return true;
        }
    }
    return false;
}

static enum err refuse_part(struct chat_reader *reader, const struct part *part, enum err err, const char *member,
                            const char *reason)
{
    char path[FIELD_PATH_BYTES_MAX];

    (void)snprintf(path, sizeof path, "messages[%u].content[%u]%s", part->message_index, part->index, member);
    return request_refuse(reader->request, err, path, "%s: %s", path, reason);
}

/* "image_url": {"url": "...", ...}, or the string alone. */
static enum err read_image_url(struct chat_reader *reader, struct part *part)
{
    struct json_event event;
    enum err err = field_next(&reader->field, &event);

    part->has_url = false;
    if (err != ERR_OK || event.kind == JSON_NULL) {
        return err;
    }
    if (event.kind == JSON_STRING) {
        part->url = event;
        part->has_url = true;
        return ERR_OK;
    }
    if (event.kind != JSON_OBJECT_BEGIN) {
        return refuse_part(reader, part, ERR_BAD_FIELD, ".image_url", "must be an object with a url");
    }
    while ((err = field_next(&reader->field, &event)) == ERR_OK && event.kind == JSON_KEY) {
        if (!json_event_is(&event, "url")) { /* `detail` has no effect on these models */
            err = field_skip(&reader->field);
        } else if ((err = field_next(&reader->field, &event)) == ERR_OK) {
            if (event.kind != JSON_STRING) {
                return refuse_part(reader, part, ERR_BAD_FIELD, ".image_url.url", "must be a string, a data: URL");
            }
            part->url = event;
            part->has_url = true;
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    return err;
}

static enum err read_part_member(struct chat_reader *reader, const struct json_event *key, struct part *part)
{
    struct json_event event;
    enum err err;

    if (json_event_is(key, "image_url")) {
        return read_image_url(reader, part);
    }
    bool is_type = json_event_is(key, "type");
    if (!is_type && !json_event_is(key, "text")) {
        return field_skip(&reader->field);
    }
    err = field_next(&reader->field, &event);
    if (err != ERR_OK) {
        return err;
    }
    if (event.kind != JSON_STRING && (is_type || event.kind != JSON_NULL)) {
        return refuse_part(reader, part, ERR_BAD_FIELD, is_type ? ".type" : ".text", "must be a string");
    }
    if (is_type) {
        part->type = event;
        part->has_type = true;
    } else {
        part->text = event;
        part->has_text = event.kind == JSON_STRING;
    }
    return ERR_OK;
}

/* The picture's file, its size from the header and its tokens; nothing is decoded. */
static enum err take_picture(struct chat_reader *reader, const struct part *part)
{
    const struct chat_rules *rules = reader->rules;
    struct request *request = reader->request;
    const char *reason = "";
    struct file_span file;
    struct image_header header;
    struct image_grid grid;

    reader->picture_count++;
    if (request->picture_count >= rules->images_max || request->picture_count >= IMAGES_MAX) {
        return ERR_OK; /* counted for the refusal at the end */
    }
    enum err err = data_url_decode((unsigned char *)part->url.text, part->url.bytes, &file, &reason);
    if (err == ERR_OK) {
        err = sniff_read_header(file.bytes, file.count, rules->max_source_pixels, &header, &reason);
    }
    if (err == ERR_OK) {
        err = grid_fit(header.width, header.height, &rules->image, &grid, &reason);
    }
    if (err != ERR_OK) {
        return refuse_part(reader, part, err, ".image_url.url", reason);
    }
    request->pictures[request->picture_count++] = (struct picture){
        .file = file.bytes,
        .file_bytes = file.count,
        .message_index = part->message_index,
        .part_index = part->index,
        .width = (uint16_t)header.width,
        .height = (uint16_t)header.height,
        .grid_h = (uint16_t)grid.grid_h,
        .grid_w = (uint16_t)grid.grid_w,
        .token_count = grid.token_count,
    };
    return ERR_OK;
}

static enum err add_part(struct chat_reader *reader, const struct part *part, struct chat_part added)
{
    struct chat_parse *parse = reader->parse;

    if (parse->part_count == PARTS_MAX) {
        return request_refuse(reader->request, ERR_BAD_FIELD, "messages",
                              "messages[%u]: at most %d content parts in all", part->message_index, PARTS_MAX);
    }
    parse->parts[parse->part_count++] = added;
    return ERR_OK;
}

/* Shows a short excerpt of what was sent. */
static enum err refuse_type(struct chat_reader *reader, const struct part *part)
{
    char reason[FIELD_PATH_BYTES_MAX];
    char sent[16];
    size_t length = part->type.bytes < sizeof sent - 1 ? part->type.bytes : sizeof sent - 1;

    for (size_t i = 0; i < length; i++) {
        char c = part->type.text[i];
        sent[i] = (char)(c > ' ' && c <= '~' && c != '"' ? c : '?');
    }
    sent[length] = '\0';
    (void)snprintf(reason, sizeof reason, "'%s': must be 'text' or 'image_url'", sent);
    return refuse_part(reader, part, ERR_BAD_FIELD, ".type", reason);
}

static enum err take_part(struct chat_reader *reader, const struct part *part)
{
    static const char *const moving[] = {"video_url",   "video", "input_video", "audio_url",
                                         "input_audio", "audio", NULL};

    if (!part->has_type) {
        return refuse_part(reader, part, ERR_BAD_FIELD, ".type", "is missing: \"text\" or \"image_url\"");
    }
    if (json_event_is(&part->type, "text")) {
        if (!part->has_text) {
            return refuse_part(reader, part, ERR_BAD_FIELD, ".text", "must be a string");
        }
        return add_part(reader, part, (struct chat_part){CHAT_TEXT, {part->text.text, part->text.bytes}});
    }
    if (json_event_is(&part->type, "image_url")) {
        if (!reader->rules->has_pictures) {
            return refuse_part(reader, part, ERR_UNSUPPORTED, "", "the model has no image input, it takes text only");
        }
        if (!part->has_url || part->url.bytes == 0) {
            return refuse_part(reader, part, ERR_BAD_FIELD, ".image_url.url", "must be a data: URL with the picture");
        }
        enum err err = take_picture(reader, part);
        return err != ERR_OK ? err : add_part(reader, part, (struct chat_part){CHAT_PICTURE, {NULL, 0}});
    }
    if (is_one_of(&part->type, moving)) {
        return refuse_part(reader, part, ERR_UNSUPPORTED, ".type",
                           "video and audio are not taken; send single pictures as image_url parts with data: URLs");
    }
    return refuse_type(reader, part);
}

static enum err read_part(struct chat_reader *reader, uint32_t message_index, uint32_t index)
{
    struct part part = {.message_index = message_index, .index = index};
    struct json_event key;
    enum err err;

    while ((err = field_next(&reader->field, &key)) == ERR_OK && key.kind == JSON_KEY) {
        err = read_part_member(reader, &key, &part);
        if (err != ERR_OK) {
            return err;
        }
    }
    return err != ERR_OK ? err : take_part(reader, &part);
}

static enum err read_content_list(struct chat_reader *reader, uint32_t message_index)
{
    struct json_event event;
    enum err err;
    uint32_t index = 0;

    while ((err = field_next(&reader->field, &event)) == ERR_OK && event.kind != JSON_ARRAY_END) {
        if (event.kind != JSON_OBJECT_BEGIN) {
            const struct part part = {.message_index = message_index, .index = index};
            return refuse_part(reader, &part, ERR_BAD_FIELD, "", "must be an object with a type");
        }
        err = read_part(reader, message_index, index++);
        if (err != ERR_OK) {
            return err;
        }
    }
    return err;
}

static enum err refuse_message(struct chat_reader *reader, uint32_t index, const char *member, const char *reason)
{
    char path[FIELD_PATH_BYTES_MAX];

    (void)snprintf(path, sizeof path, "messages[%u]%s", index, member);
    return request_refuse(reader->request, ERR_BAD_FIELD, path, "%s %s", path, reason);
}

/* Where a message begins: what is thrown away when its content is given again. */
struct message_start {
    uint32_t index, part_count, picture_count, all_pictures;
};

static enum err read_content(struct chat_reader *reader, struct chat_message *message,
                             const struct message_start *start)
{
    struct chat_parse *parse = reader->parse;
    struct json_event event;
    enum err err = field_next(&reader->field, &event);

    if (err != ERR_OK) {
        return err;
    }
    parse->part_count = start->part_count;
    reader->request->picture_count = start->picture_count;
    reader->picture_count = start->all_pictures;
    if (event.kind == JSON_NULL) {
        message->content = CHAT_NO_CONTENT;
    } else if (event.kind == JSON_STRING) {
        const struct part whole = {.message_index = start->index};
        message->content = CHAT_STRING_CONTENT;
        err = add_part(reader, &whole, (struct chat_part){CHAT_TEXT, {event.text, event.bytes}});
    } else if (event.kind == JSON_ARRAY_BEGIN) {
        message->content = CHAT_LIST_CONTENT;
        err = read_content_list(reader, start->index);
    } else {
        return refuse_message(reader, start->index, ".content", "must be a string or a list of parts");
    }
    message->parts = parse->parts + start->part_count;
    message->part_count = parse->part_count - start->part_count;
    return err;
}

static enum err read_role(struct chat_reader *reader, struct chat_message *message, uint32_t index)
{
    /* As OpenAI's newer name for it, a developer speaks for the system. */
    static const struct {
        const char *name, *role;
    } roles[] = {{"user", "user"},        {"assistant", "assistant"}, {"system", "system"},
                 {"developer", "system"}, {"tool", "tool"},           {"function", "tool"}};
    struct json_event event;
    enum err err = field_next(&reader->field, &event);

    if (err != ERR_OK) {
        return err;
    }
    for (size_t i = 0; event.kind == JSON_STRING && i < sizeof roles / sizeof roles[0]; i++) {
        if (strlen(roles[i].name) == event.bytes && strncasecmp(roles[i].name, event.text, event.bytes) == 0) {
            message->role = (struct json_span){roles[i].role, strlen(roles[i].role)};
            return ERR_OK;
        }
    }
    return refuse_message(reader, index, ".role", "must be system, developer, user, assistant, tool or function");
}

static enum err read_tool_calls(struct chat_reader *reader, struct chat_message *message, uint32_t index)
{
    struct json_span span;
    enum err err = json_skip_raw(&reader->field.json, &span);

    if (err != ERR_OK) {
        return field_skip(&reader->field); /* the same error again, worded */
    }
    message->tool_calls = (struct json_span){NULL, 0};
    if (span.bytes[0] == 'n') {
        return ERR_OK;
    }
    if (span.bytes[0] != '[') {
        return refuse_message(reader, index, ".tool_calls", "must be a list");
    }
    size_t at = 1;
    while (strchr(" \t\r\n", span.bytes[at]) != NULL) {
        at++;
    }
    if (span.bytes[at] != ']') { /* an empty list is none */
        message->tool_calls = span;
    }
    return ERR_OK;
}

static bool is_role(const struct chat_message *message, const char *role)
{
    return message->role.length == strlen(role) && memcmp(message->role.bytes, role, message->role.length) == 0;
}

static enum err read_message(struct chat_reader *reader, uint32_t index)
{
    struct chat_message *message = &reader->parse->messages[index];
    const struct message_start start = {index, reader->parse->part_count, reader->request->picture_count,
                                        reader->picture_count};
    struct json_event key;
    enum err err;

    memset(message, 0, sizeof *message);
    message->parts = reader->parse->parts + start.part_count;
    while ((err = field_next(&reader->field, &key)) == ERR_OK && key.kind == JSON_KEY) {
        if (json_event_is(&key, "role")) {
            err = read_role(reader, message, index);
        } else if (json_event_is(&key, "content")) {
            err = read_content(reader, message, &start);
        } else if (json_event_is(&key, "tool_calls")) {
            err = read_tool_calls(reader, message, index);
        } else {
            err = field_skip(&reader->field);
        }
        if (err != ERR_OK) {
            return err;
        }
    }
    if (err != ERR_OK) {
        return err;
    }
    if (message->role.length == 0) {
        return refuse_message(reader, index, ".role", "is missing");
    }
    bool may_be_empty = is_role(message, "assistant") || is_role(message, "tool");
    if (message->content == CHAT_NO_CONTENT && !may_be_empty) {
        return refuse_message(reader, index, ".content", "must be a string or a list of parts");
    }
    return ERR_OK;
}

enum err chat_content_read(struct chat_reader *reader)
{
    struct chat_parse *parse = reader->parse;
    struct json_event event;
    enum err err = field_next(&reader->field, &event);

    if (err == ERR_OK) {
        err = field_expect(&reader->field, &event, "messages", JSON_ARRAY_BEGIN);
    }
    if (err != ERR_OK) {
        return err;
    }
    parse->chat.message_count = 0;
    parse->part_count = 0;
    reader->request->picture_count = reader->picture_count = 0;
    while ((err = field_next(&reader->field, &event)) == ERR_OK && event.kind != JSON_ARRAY_END) {
        uint32_t index = (uint32_t)parse->chat.message_count;
        if (event.kind != JSON_OBJECT_BEGIN) {
            return refuse_message(reader, index, "", "must be an object");
        }
        if (index == MESSAGES_MAX) {
            return request_refuse(reader->request, ERR_BAD_FIELD, "messages", "at most %d messages", MESSAGES_MAX);
        }
        err = read_message(reader, index);
        if (err != ERR_OK) {
            return err;
        }
        parse->chat.message_count++;
    }
    assert(parse->part_count <= PARTS_MAX);
    return err;
}
