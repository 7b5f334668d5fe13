/* stops: finds stop strings in the text of an answer while its ids come, and says how much of it may be shown.
 *
 * Always true between calls: partial[i] is the length of the longest beginning of string i that the text read so far
 * ends with, so the text itself need not be kept; safe_bytes is the text's length without the longest of these. A
 * beginning grows by a byte at most for each byte of text, so safe_bytes never moves back.
 */
#include "engine/text/stops.h"

#include "engine/request.h"

#include <assert.h>
#include <string.h>

enum { PIECE_BYTES = 64 };

void stops_open(struct stops *stops, const struct stop_string *strings, uint32_t string_count, bool skips_special,
                bool keeps_match)
{
    assert(string_count <= STOP_STRINGS_MAX);
    *stops = (struct stops){
        .strings = strings,
        .string_count = string_count,
        .keeps_match = keeps_match,
        .matched = -1,
    };
    detok_open(&stops->detok, skips_special);
}

/* The longest beginning of `string` that string[0 .. length) followed by `c` ends with. Beginnings are searched where
 * they are needed: a table of them would be larger than everything else here, and long ones are rare. */
static uint16_t longest_beginning(const struct stop_string *string, uint16_t length, char c)
{
    assert(length < string->bytes);
    for (uint16_t keep = length; keep > 0; keep--) {
        /* Does it end with string[0 .. keep] ? */
        if (string->text[keep] == c && memcmp(string->text, string->text + length - keep, keep) == 0) {
            return (uint16_t)(keep + 1);
        }
    }
    return string->text[0] == c ? 1 : 0;
}

/* Moves all strings on by one byte of text. Returns the first that is complete, or -1. */
static int32_t move_on(struct stops *stops, char c)
{
    int32_t complete = -1;
    for (uint32_t i = 0; i < stops->string_count; i++) {
        const struct stop_string *string = &stops->strings[i];
        if (string->bytes == 0) {
            continue;
        }
        stops->partial[i] = longest_beginning(string, stops->partial[i], c);
        if (stops->partial[i] == string->bytes && complete < 0) {
            complete = (int32_t)i;
        }
    }
    return complete;
}

static uint16_t longest_partial(const struct stops *stops)
{
    uint16_t longest = 0;
    for (uint32_t i = 0; i < stops->string_count; i++) {
        longest = stops->partial[i] > longest ? stops->partial[i] : longest;
    }
    return longest;
}

bool stops_append(struct stops *stops, const struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                  bool is_final)
{
    char piece[PIECE_BYTES];
    size_t bytes;
    uint64_t before = stops->safe_bytes;

    assert(stops->matched < 0);
    while ((bytes = detok_read(&stops->detok, tokenizer, ids, count, is_final, UINT64_MAX, piece, sizeof piece)) > 0) {
        uint64_t begin = stops->detok.text_bytes - bytes; /* of the piece, in the text */
        for (size_t i = 0; i < bytes; i++) {
            int32_t complete = move_on(stops, piece[i]);
            if (complete >= 0) {
                uint64_t end = begin + i + 1;
                stops->matched = complete;
                stops->safe_bytes = end - (stops->keeps_match ? 0 : stops->strings[complete].bytes);
                assert(stops->safe_bytes >= before);
                return true;
            }
        }
    }
    stops->safe_bytes = stops->detok.text_bytes - (is_final ? 0 : longest_partial(stops));
    assert(stops->safe_bytes >= before);
    return false;
}
