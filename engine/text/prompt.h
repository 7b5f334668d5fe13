/* prompt: a text under construction that remembers which parts of it the template wrote. */
#ifndef ENGINE_TEXT_PROMPT_H
#define ENGINE_TEXT_PROMPT_H

#include "engine/text/tokenizer.h"

struct prompt {
    char *text; /* [capacity] */
    size_t capacity, length;
    struct text_range *ranges; /* [range_capacity]: where added tokens may be matched, ascending, never touching */
    size_t range_capacity, range_count;
    bool has_overflowed; /* sticky: something did not fit */
};

/* Starts an empty prompt in the caller's memory. */
void prompt_open(struct prompt *prompt, char *text, size_t capacity, struct text_range *ranges, size_t range_capacity);

/* Appends text of the template: its added tokens count as such. */
void prompt_template(struct prompt *prompt, const char *text);

/* Appends text of the client: plain, whatever it looks like. */
void prompt_user(struct prompt *prompt, const char *text, size_t bytes);

/* Makes added tokens count everywhere, the client's text included. */
void prompt_allow_all(struct prompt *prompt);

#endif
