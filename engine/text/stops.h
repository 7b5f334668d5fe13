/* stops: finds stop strings in the text of an answer while its ids come, and says how much of it may be shown. */
#ifndef ENGINE_TEXT_STOPS_H
#define ENGINE_TEXT_STOPS_H

#include "engine/text/detok.h"

struct stop_string; /* engine/request.h */

struct stops {
    struct detok detok;
    const struct stop_string *strings; /* the caller's */
    uint32_t string_count;
    bool keeps_match;                   /* no_stop_trim: what matched is shown too */
    int32_t matched;                    /* index of the string that ended the answer, or -1 */
    uint64_t safe_bytes;                /* of the answer's text that may be shown, whatever comes; never moves back */
    uint16_t partial[STOP_STRINGS_MAX]; /* the longest beginning of each that the text ends with */
};

/* `strings` (up to STOP_STRINGS_MAX; empty ones never match) stay the caller's. */
void stops_open(struct stops *stops, const struct stop_string *strings, uint32_t string_count, bool skips_special,
                bool keeps_match);

/* Reads on in ids[0 .. count), as detok_read does, and sets safe_bytes: whole characters, without what may be the
 * beginning of a stop string; if `is_final`, to the end. True if a stop string is complete: the earliest in the text;
 * of several that end together, the first in the list. Then safe_bytes is final: where the match begins, or ends. */
bool stops_append(struct stops *stops, const struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                  bool is_final);

#endif
