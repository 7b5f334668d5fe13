/* detok: ids into text, a piece at a time, without keeping the text.
 *
 * Always true between calls: what was given out is valid UTF-8 and a beginning of the text of any continuation of the
 * ids; `held` is a proper beginning of a character, the last bytes before (next_id, token_at).
 */
#include "engine/text/detok.h"

#include <assert.h>
#include <string.h>

void detok_open(struct detok *detok, bool skips_special)
{
    *detok = (struct detok){.skips_special = skips_special};
}

/* Where one call writes. */
struct output {
    char *bytes;
    size_t room; /* by the buffer and the limit */
    size_t length;
};

static bool put(struct detok *detok, struct output *output, const char *bytes, size_t length)
{
    assert(output->length <= output->room);
    if (length > output->room - output->length) {
        return false;
    }
    memcpy(output->bytes + output->length, bytes, length);
    output->length += length;
    detok->text_bytes += length;
    return true;
}

/* Takes characters from `held` followed by `bytes`, until they are used up or the output is full. Returns how many of
 * `bytes` are used up. */
static size_t take(struct detok *detok, struct output *output, const char *bytes, size_t length)
{
    size_t at = 0;
    while (at < length) {
        char window[UTF8_BYTES_MAX];
        size_t held = detok->held_count;
        size_t more = length - at < sizeof window - held ? length - at : sizeof window - held;
        uint32_t code;

        memcpy(window, detok->held, held);
        memcpy(window + held, bytes + at, more);
        int step = utf8_decode(window, held + more, &code);
        if (step == 0) {
            memcpy(detok->held, window, held + more);
            detok->held_count = (uint8_t)(held + more);
            return length;
        }
        bool is_put = step > 0 ? put(detok, output, window, (size_t)step)
                               : put(detok, output, UTF8_REPLACEMENT, UTF8_REPLACEMENT_BYTES);
        if (!is_put) {
            return at;
        }
        size_t used = step > 0 ? (size_t)step : (size_t)-step;
        assert(used >= held); /* what is held is a good beginning, so a fault lies behind it */
        at += used - held;
        detok->held_count = 0;
    }
    return at;
}

size_t detok_read(struct detok *detok, const struct tokenizer *tokenizer, const int32_t *ids, size_t count,
                  bool is_final, uint64_t limit_bytes, char *out, size_t capacity)
{
    uint64_t limit = limit_bytes > detok->text_bytes ? limit_bytes - detok->text_bytes : 0;
    struct output output = {out, limit < capacity ? (size_t)limit : capacity, 0};

    assert(detok->next_id <= count && capacity >= UTF8_BYTES_MAX);
    while (detok->next_id < count && output.length < output.room) {
        int32_t id = ids[detok->next_id];
        size_t length;
        const char *bytes = tokenizer_token(tokenizer, id, &length);
        if (detok->skips_special && tokenizer_is_special(tokenizer, id)) {
            length = 0;
        }
        detok->token_at += (uint32_t)take(detok, &output, bytes + detok->token_at, length - detok->token_at);
        if (detok->token_at < length) {
            break; /* full */
        }
        detok->token_at = 0;
        detok->next_id++;
    }
    if (is_final && detok->next_id == count && detok->held_count > 0 &&
        put(detok, &output, UTF8_REPLACEMENT, UTF8_REPLACEMENT_BYTES)) {
        detok->held_count = 0;
    }
    return output.length;
}
