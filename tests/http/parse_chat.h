/* parse_chat: runs chat_request_parse over a text for a test. */
#ifndef TESTS_HTTP_PARSE_CHAT_H
#define TESTS_HTTP_PARSE_CHAT_H

#include "engine/http/chat_request.h"
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

enum { PARSE_VOCAB = 1000, PARSE_BODY_MAX = 4 * 1024 * 1024 };

static struct request parsed;
static struct chat_parse parse;
static char *parse_body;

static struct chat_rules parse_rules = {
    .vocab_size = PARSE_VOCAB,
    .defaults = {.temperature = 0.5F, .top_p = 0.9F, .top_k = 20, .repetition_penalty = 1.05F},
    .has_pictures = true,
    .has_tools = true,
    .image = {.patch = 14, .merge = 2, .min_pixels = 3136, .max_pixels = 1003520, .std = {1, 1, 1}},
    .max_source_pixels = 1000000,
    .images_max = 3,
    .choices_max = 4,
};

static inline enum err parse_bytes(const char *bytes, size_t length)
{
    if (parse_body == NULL) {
        parse_body = harness_memory(PARSE_BODY_MAX);
    }
    request_open(&parsed, 0, 1, 1, 1);
    char *place = parse_body + PARSE_BODY_MAX - length; /* the byte behind it cannot be read */
    memcpy(place, bytes, length);
    parsed.body = (unsigned char *)place;
    parsed.body_bytes = length;
    enum err err = chat_request_parse(&parse, &parsed, &parse_rules);
    CU_ASSERT(err == parsed.err);
    return err;
}

static inline enum err parse_text(const char *text)
{
    return parse_bytes(text, strlen(text));
}

/* A request with one message "Hi" and `fields` (beginning with a comma, or empty). */
static inline enum err parse_fields(const char *fields)
{
    static char text[131072];
    (void)snprintf(text, sizeof text, "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]%s}", fields);
    return parse_text(text);
}

/* A request with these messages. */
static inline enum err parse_messages(const char *messages)
{
    static char text[PARSE_BODY_MAX + 64];
    (void)snprintf(text, sizeof text, "{\"messages\":%s}", messages);
    return parse_text(text);
}

static inline bool span_is(struct json_span span, const char *text)
{
    return span.length == strlen(text) && memcmp(span.bytes, text, span.length) == 0;
}

#endif
