/* chat_content: the `messages` of a chat request: roles, texts, pictures. */
#ifndef ENGINE_HTTP_CHAT_CONTENT_H
#define ENGINE_HTTP_CHAT_CONTENT_H

#include "engine/http/chat_request.h"
#include "engine/http/field.h"

/* What the readers of one body share. */
struct chat_reader {
    struct field_reader field;
    struct chat_parse *parse;
    struct request *request;
    const struct chat_rules *rules;
    uint32_t picture_count; /* all pictures, those beyond the limit too */
};

/* Reads the value of "messages" from where the reader stands; a later one replaces an earlier one. */
enum err chat_content_read(struct chat_reader *reader) ERR_CHECKED;

#endif
