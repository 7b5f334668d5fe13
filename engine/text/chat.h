/* chat: messages into the text, and the ids, that the checkpoint's chat template makes of them. */
#ifndef ENGINE_TEXT_CHAT_H
#define ENGINE_TEXT_CHAT_H

#include "engine/json.h"
#include "engine/text/prompt.h"
#include "engine/text/tokenizer.h"

enum chat_part_kind { CHAT_TEXT, CHAT_PICTURE, CHAT_VIDEO };

struct chat_part {
    enum chat_part_kind kind;
    struct json_span text; /* of CHAT_TEXT: unescaped UTF-8 */
};

enum chat_content {
    CHAT_NO_CONTENT,     /* absent or null */
    CHAT_STRING_CONTENT, /* `parts` is one text */
    CHAT_LIST_CONTENT,
};

struct chat_message {
    struct json_span role; /* "system", "user", "assistant", "tool", or another one that the caller lets through */
    enum chat_content content;
    const struct chat_part *parts;
    size_t part_count;
    struct json_span list_json;  /* CHAT_LIST_CONTENT: the list as it came, untouched; for templates that print it */
    struct json_span tool_calls; /* the array as it came, untouched; length 0: none */
};

struct chat_request {
    const struct chat_message *messages;
    size_t message_count;
    struct json_span tools;      /* the array as it came, untouched; length 0: none */
    bool adds_generation_prompt; /* true, as a server does */
    bool adds_vision_id;         /* "Picture 1: " before pictures, where the template knows it */
    bool parses_arguments; /* arguments of tool calls that are strings are JSON, as the API has them; false: kept */
    bool joins_text_parts; /* a template that takes only strings gets lists of text joined by a blank, as the
                              reference server does; false: they are an error, as in the template itself */
    bool allows_special_in_text; /* the reference's behaviour: a client's <|im_end|> is the token */
};

/* Why a template refuses a request. */
struct chat_fault {
    size_t message_index; /* message_count: it is about `tools` */
    const char *reason;   /* a constant phrase */
};

struct chat_template;

/* The template with this text, or NULL: unknown. */
const struct chat_template *chat_find(const char *text, size_t bytes);

/* A checkpoint's files that may hold its template (NULL bytes: absent). They are only read. */
struct chat_files {
    struct json_span chat_template_json, chat_template_jinja, tokenizer_config_json;
};

/* Finds the checkpoint's template, in the first of these files that has one. NULL: `detail` (ERROR_DETAIL_BYTES_MAX)
 * says what was found and what is known. Start-up only. */
const struct chat_template *chat_open(const struct chat_files *files, char *detail);

/* A short name, for logs. */
const char *chat_name(const struct chat_template *chat);

/* True if the template takes pictures; true if it shows tools to the model. */
bool chat_takes_pictures(const struct chat_template *chat);
bool chat_takes_tools(const struct chat_template *chat);

/* Renders a request. ERR_BAD_FIELD: the template refuses it; `fault` says why. ERR_BAD_JSON: tools or tool_calls are
 * not JSON. ERR_TOO_DEEP: the prompt's buffers are too small, or the JSON nests too deeply. */
ERR_CHECKED enum err chat_render(const struct chat_template *chat, const struct chat_request *request,
                                 struct prompt *prompt, struct chat_fault *fault);

/* Scratch for chat_encode of prompts of up to `text_bytes` bytes, aligned to 8. */
size_t chat_scratch_bytes(size_t text_bytes);

/* Renders and encodes: ids[0 .. *count), one <|image_pad|> for each picture, in the order of the parts. As chat_render,
 * and ERR_CONTEXT_EXCEEDED: more than `capacity`; *count is the real number. The text between two added tokens of the
 * template is tokenised as a whole, whoever wrote it; an added token inside a client's text is plain text. */
ERR_CHECKED enum err chat_encode(const struct chat_template *chat, const struct chat_request *request,
                                 const struct tokenizer *tokenizer, int32_t *ids, size_t capacity, void *scratch,
                                 size_t scratch_bytes, size_t *count, struct chat_fault *fault);

#endif
