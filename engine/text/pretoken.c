/* pretoken: cuts text into the words that byte pairs are merged within.
 *
 * Nothing is kept between calls. Each alternative of PRETOKEN_PATTERN is one function, tried in the pattern's order;
 * what backtracking does there is worked out by hand, so no byte is looked at more than three times.
 */
#include "engine/text/pretoken.h"

#include "engine/text/unicode.h"
#include "engine/text/utf8.h"

#include <assert.h>
#include <stdbool.h>

struct character {
    size_t bytes; /* 0: the end */
    uint32_t code;
    enum unicode_class class;
};

static struct character character_at(const char *text, size_t bytes, size_t at)
{
    static const unsigned char ascii[128] = {
        ['\t'] = UNICODE_SPACE, ['\n'] = UNICODE_SPACE, ['\v'] = UNICODE_SPACE, ['\f'] = UNICODE_SPACE,
        ['\r'] = UNICODE_SPACE, [' '] = UNICODE_SPACE,  ['0'] = UNICODE_NUMBER, ['1'] = UNICODE_NUMBER,
        ['2'] = UNICODE_NUMBER, ['3'] = UNICODE_NUMBER, ['4'] = UNICODE_NUMBER, ['5'] = UNICODE_NUMBER,
        ['6'] = UNICODE_NUMBER, ['7'] = UNICODE_NUMBER, ['8'] = UNICODE_NUMBER, ['9'] = UNICODE_NUMBER,
    };
    struct character c = {0, 0, UNICODE_OTHER};
    if (at >= bytes) {
        return c;
    }
    unsigned char lead = (unsigned char)text[at];
    if (lead < 0x80) {
        unsigned char lower = lead | 0x20;
        bool is_letter = lower >= 'a' && lower <= 'z';
        return (struct character){1, lead, is_letter ? UNICODE_LETTER : (enum unicode_class)ascii[lead]};
    }
    int step = utf8_decode(text + at, bytes - at, &c.code);
    assert(step > 0);
    c.bytes = (size_t)step;
    c.class = unicode_class(c.code);
    return c;
}

static bool is_line_end(struct character c)
{
    return c.code == '\r' || c.code == '\n';
}

/* End of the run of characters of one class that begins at `at`. */
static size_t run_end(const char *text, size_t bytes, size_t at, enum unicode_class class)
{
    struct character c = character_at(text, bytes, at);
    while (c.bytes > 0 && c.class == class) {
        at += c.bytes;
        c = character_at(text, bytes, at);
    }
    return at;
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d), the long s included, which folds to s. */
static size_t contraction(const char *text, size_t bytes)
{
    if (text[0] != '\'' || bytes < 2) {
        return 0;
    }
    if (bytes >= 3 && text[1] == '\xc5' && text[2] == '\xbf') {
        return 3;
    }
    char first = (char)(text[1] | 0x20);
    char second = bytes >= 3 ? (char)(text[2] | 0x20) : '\0';
    if (first == 's' || first == 't' || first == 'm' || first == 'd') {
        return 2;
    }
    if (((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l')) {
        return 3;
    }
    return 0;
}

/* \s*[\r\n]+ and \s+(?!\S) and \s+ on a text that begins with white space. */
static size_t space(const char *text, size_t bytes)
{
    size_t at = 0;
    size_t last = 0;        /* where the run's last character begins */
    size_t behind_line = 0; /* end of the run's last line end; 0: none */
    for (;;) {
        struct character c = character_at(text, bytes, at);
        if (c.bytes == 0 || c.class != UNICODE_SPACE) {
            break;
        }
        last = at;
        at += c.bytes;
        behind_line = is_line_end(c) ? at : behind_line;
    }
    assert(at > 0);
    if (behind_line > 0) {
        return behind_line;
    }
    return at == bytes || last == 0 ? at : last; /* before a word the last space goes to the word */
}

size_t pretoken_bytes(const char *text, size_t bytes)
{
    assert(bytes > 0);
    struct character first = character_at(text, bytes, 0);
    struct character second = character_at(text, bytes, first.bytes);
    size_t end = contraction(text, bytes);

    if (end > 0) {
        return end;
    }
    /* [^\r\n\p{L}\p{N}]?\p{L}+ */
    if (first.class == UNICODE_LETTER) {
        return run_end(text, bytes, 0, UNICODE_LETTER);
    }
    if (first.class != UNICODE_NUMBER && !is_line_end(first) && second.bytes > 0 && second.class == UNICODE_LETTER) {
        return run_end(text, bytes, first.bytes, UNICODE_LETTER);
    }
    /* \p{N} */
    if (first.class == UNICODE_NUMBER) {
        return first.bytes;
    }
    /* ?[^\s\p{L}\p{N}]+[\r\n]* */
    if (first.class == UNICODE_OTHER || (first.code == ' ' && second.bytes > 0 && second.class == UNICODE_OTHER)) {
        end = run_end(text, bytes, first.class == UNICODE_OTHER ? 0 : 1, UNICODE_OTHER);
        while (end < bytes && (text[end] == '\r' || text[end] == '\n')) {
            end++;
        }
        return end;
    }
    return space(text, bytes);
}
