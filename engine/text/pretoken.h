/* pretoken: cuts text into the words that byte pairs are merged within. */
#ifndef ENGINE_TEXT_PRETOKEN_H
#define ENGINE_TEXT_PRETOKEN_H

#include <stddef.h>

/* The regular expression that pretoken_bytes equals, as it stands in tokenizer.json. */
#define PRETOKEN_PATTERN                                                                                               \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"                 \
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Length of the first word of `text`: valid UTF-8, at least one byte; the end of `text` is the end of the subject. */
size_t pretoken_bytes(const char *text, size_t bytes);

#endif
