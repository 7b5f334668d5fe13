/* read_chat: a chat request out of a golden file's JSON, as intake will read it out of a body. */
#ifndef TESTS_TEXT_READ_CHAT_H
#define TESTS_TEXT_READ_CHAT_H

#include "engine/json.h"
#include "engine/text/chat.h"
#include "tests/harness.h"

#include <string.h>

enum {
    READ_MESSAGES_MAX = 64,
    READ_PARTS_MAX = 256,
};

struct read_chat {
    struct chat_message messages[READ_MESSAGES_MAX];
    struct chat_part parts[READ_PARTS_MAX];
    struct chat_request request;
    size_t part_count;
    char *arena; /* unescaped strings */
    size_t arena_used, arena_bytes;
};

/* The unescaped text of a raw string event, in the arena. */
static inline struct json_span read_text(struct read_chat *chat, const struct json_event *event)
{
    CU_ASSERT_FATAL(event->kind == JSON_STRING && event->bytes <= chat->arena_bytes - chat->arena_used);
    char *text = chat->arena + chat->arena_used;
    size_t bytes = json_unescape(event->text, event->bytes, text);
    chat->arena_used += bytes;
    return (struct json_span){text, bytes};
}

static inline void read_part(struct read_chat *chat, struct json_span json)
{
    struct json_reader reader;
    struct json_event event;
    struct json_event value;
    struct chat_part part = {CHAT_TEXT, {"", 0}};
    json_open_raw(&reader, json.bytes, json.length);
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    while (json_next(&reader, &event) == ERR_OK && event.kind == JSON_KEY) {
        if (json_event_is(&event, "image_url") || json_event_is(&event, "image")) {
            part.kind = CHAT_PICTURE;
        } else if (json_event_is(&event, "video")) {
            part.kind = CHAT_VIDEO;
        } else if (json_event_is(&event, "text") || json_event_is(&event, "type")) {
            bool is_type = json_event_is(&event, "type");
            CU_ASSERT_EQUAL(json_next(&reader, &value), ERR_OK);
            if (!is_type) {
                part.text = read_text(chat, &value);
            } else if (json_event_is(&value, "image")) {
                part.kind = CHAT_PICTURE;
            }
            continue;
        }
        CU_ASSERT_EQUAL(json_skip(&reader), ERR_OK);
    }
    CU_ASSERT_FATAL(chat->part_count < READ_PARTS_MAX);
    chat->parts[chat->part_count++] = part;
}

static inline void read_content(struct read_chat *chat, struct chat_message *message, struct json_span json)
{
    struct json_reader reader;
    struct json_event event;
    json_open_raw(&reader, json.bytes, json.length);
    CU_ASSERT_EQUAL(json_next(&reader, &event), ERR_OK);
    message->parts = &chat->parts[chat->part_count];
    if (event.kind == JSON_STRING) {
        message->content = CHAT_STRING_CONTENT;
        chat->parts[chat->part_count++] = (struct chat_part){CHAT_TEXT, read_text(chat, &event)};
    } else if (event.kind == JSON_ARRAY_BEGIN) {
        message->content = CHAT_LIST_CONTENT;
        message->list_json = json;
        while (json_next(&reader, &event) == ERR_OK && event.kind == JSON_OBJECT_BEGIN) {
            struct json_span item;
            CU_ASSERT_EQUAL(json_skip_raw(&reader, &item), ERR_OK);
            read_part(chat, item);
        }
    }
    message->part_count = (size_t)(&chat->parts[chat->part_count] - message->parts);
}

/* Reads the array of messages that comes next into chat->request. */
static inline void read_messages(struct read_chat *chat, struct json_reader *reader)
{
    struct json_event event;
    chat->part_count = 0;
    chat->arena_used = 0;
    chat->request = (struct chat_request){.messages = chat->messages, .adds_generation_prompt = true};
    CU_ASSERT_EQUAL(json_next(reader, &event), ERR_OK);
    while (json_next(reader, &event) == ERR_OK && event.kind == JSON_OBJECT_BEGIN) {
        CU_ASSERT_FATAL(chat->request.message_count < READ_MESSAGES_MAX);
        struct chat_message *message = &chat->messages[chat->request.message_count++];
        *message = (struct chat_message){.content = CHAT_NO_CONTENT};
        while (json_next(reader, &event) == ERR_OK && event.kind == JSON_KEY) {
            struct json_span value;
            bool is_role = json_event_is(&event, "role");
            bool is_content = json_event_is(&event, "content");
            bool is_calls = json_event_is(&event, "tool_calls");
            CU_ASSERT_EQUAL(json_skip_raw(reader, &value), ERR_OK);
            if (is_role) {
                message->role = (struct json_span){value.bytes + 1, value.length - 2};
            } else if (is_content) {
                read_content(chat, message, value);
            } else if (is_calls) {
                message->tool_calls = value;
            }
        }
    }
    CU_ASSERT_EQUAL(event.kind, JSON_ARRAY_END);
}

static inline void read_chat_open(struct read_chat *chat, size_t arena_bytes)
{
    memset(chat, 0, sizeof *chat);
    chat->arena = harness_memory(arena_bytes);
    chat->arena_bytes = arena_bytes;
}

#endif
