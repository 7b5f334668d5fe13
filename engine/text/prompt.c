/* prompt: a text under construction that remembers which parts of it the template wrote.
 *
 * Always true between calls: length <= capacity; the ranges are exactly what prompt_template appended, neighbours
 * joined, so a token of the template is matched even if it was appended in two pieces, and never across a client's
 * text.
 */
#include "engine/text/prompt.h"

#include <assert.h>
#include <string.h>

void prompt_open(struct prompt *prompt, char *text, size_t capacity, struct text_range *ranges, size_t range_capacity)
{
    assert(text != NULL && ranges != NULL && range_capacity > 0);
    *prompt = (struct prompt){.text = text, .capacity = capacity, .ranges = ranges, .range_capacity = range_capacity};
}

void prompt_user(struct prompt *prompt, const char *text, size_t bytes)
{
    assert(prompt->length <= prompt->capacity);
    if (bytes > prompt->capacity - prompt->length) {
        prompt->has_overflowed = true;
        return;
    }
    if (bytes > 0) {
        memcpy(prompt->text + prompt->length, text, bytes);
        prompt->length += bytes;
    }
}

void prompt_template(struct prompt *prompt, const char *text)
{
    size_t begin = prompt->length;

    assert(prompt->ranges != NULL || prompt->range_capacity == 0);
    prompt_user(prompt, text, strlen(text));
    if (prompt->length == begin) {
        return;
    }
    struct text_range *last = prompt->range_count > 0 ? &prompt->ranges[prompt->range_count - 1] : NULL;
    if (last != NULL && last->end == begin) {
        last->end = prompt->length;
    } else if (prompt->range_count < prompt->range_capacity) {
        prompt->ranges[prompt->range_count++] = (struct text_range){begin, prompt->length};
    } else {
        prompt->has_overflowed = true;
    }
}

void prompt_allow_all(struct prompt *prompt)
{
    assert(prompt->length <= prompt->capacity);
    prompt->ranges[0] = (struct text_range){0, prompt->length};
    prompt->range_count = 1;
}
