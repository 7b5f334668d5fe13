/* base64: decoding over itself.
 *
 * Always true inside: what was written ends at or before what was read, so nothing unread is overwritten.
 */
#include "engine/image/base64.h"

#include <assert.h>

enum { SPACE = 65, DIGIT_COUNT = 64 };

/* 1 + the value of each digit; SPACE for white space; 0 for everything else, padding included. */
static const uint8_t DIGITS[256] = {
    ['A'] = 1,      ['B'] = 2,      ['C'] = 3,      ['D'] = 4,      ['E'] = 5,     ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,      ['J'] = 10,     ['K'] = 11,     ['L'] = 12,     ['M'] = 13,    ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17,     ['R'] = 18,     ['S'] = 19,     ['T'] = 20,     ['U'] = 21,    ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25,     ['Z'] = 26,     ['a'] = 27,     ['b'] = 28,     ['c'] = 29,    ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33,     ['h'] = 34,     ['i'] = 35,     ['j'] = 36,     ['k'] = 37,    ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41,     ['p'] = 42,     ['q'] = 43,     ['r'] = 44,     ['s'] = 45,    ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49,     ['x'] = 50,     ['y'] = 51,     ['z'] = 52,     ['0'] = 53,    ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57,     ['5'] = 58,     ['6'] = 59,     ['7'] = 60,     ['8'] = 61,    ['9'] = 62, ['+'] = 63, ['/'] = 64,
    ['\t'] = SPACE, ['\n'] = SPACE, ['\f'] = SPACE, ['\r'] = SPACE, [' '] = SPACE,
};

/* Where decoding stands: digits that do not make three bytes yet are pending. */
struct cursor {
    unsigned char *text;
    size_t text_bytes, read, write;
    uint32_t bits;
    unsigned pending_count; /* 0 .. 3 */
};

static size_t decode_quads(const unsigned char *text, size_t text_bytes, unsigned char *out)
{
    size_t read = 0;

    for (; text_bytes - read >= 4; read += 4, out += 3) {
        uint32_t a = DIGITS[text[read]] - 1U, b = DIGITS[text[read + 1]] - 1U;
        uint32_t c = DIGITS[text[read + 2]] - 1U, d = DIGITS[text[read + 3]] - 1U;
        if ((a | b | c | d) >= DIGIT_COUNT) {
            break;
        }
        uint32_t bits = a << 18 | b << 12 | c << 6 | d;
        out[0] = (unsigned char)(bits >> 16);
        out[1] = (unsigned char)(bits >> 8);
        out[2] = (unsigned char)bits;
    }
    return read;
}

/* One character. False at padding and at what is not base64. */
static bool decode_one(struct cursor *cursor)
{
    unsigned digit = DIGITS[cursor->text[cursor->read]];

    if (digit == 0) {
        return false;
    }
    cursor->read++;
    if (digit == SPACE) {
        return true;
    }
    cursor->bits = cursor->bits << 6 | (digit - 1);
    cursor->pending_count++;
    if (cursor->pending_count == 4) {
        for (int shift = 16; shift >= 0; shift -= 8) {
            cursor->text[cursor->write++] = (unsigned char)(cursor->bits >> shift);
        }
        cursor->pending_count = 0;
    }
    return true;
}

/* The end: complete padding or none, nothing but white space behind it, and the bytes that are still pending. */
static bool decode_end(struct cursor *cursor)
{
    unsigned pad_count = 0;

    for (; cursor->read < cursor->text_bytes; cursor->read++) {
        if (cursor->text[cursor->read] == '=' && pad_count < 2) {
            pad_count++;
        } else if (DIGITS[cursor->text[cursor->read]] != SPACE) {
            return false;
        }
    }
    if (cursor->pending_count == 1 || (pad_count > 0 && cursor->pending_count + pad_count != 4)) {
        return false;
    }
    if (cursor->pending_count == 2) {
        cursor->text[cursor->write++] = (unsigned char)(cursor->bits >> 4);
    } else if (cursor->pending_count == 3) {
        cursor->text[cursor->write++] = (unsigned char)(cursor->bits >> 10);
        cursor->text[cursor->write++] = (unsigned char)(cursor->bits >> 2);
    }
    return true;
}

bool base64_decode_in_place(unsigned char *text, size_t text_bytes, size_t *decoded_bytes)
{
    assert(text != NULL && decoded_bytes != NULL);
    struct cursor cursor = {.text = text, .text_bytes = text_bytes};
    bool has_avx2 = __builtin_cpu_supports("avx2");

    for (bool is_going = true; is_going && cursor.read < text_bytes;) {
        if (cursor.pending_count == 0) {
            size_t taken = 0;
            if (has_avx2) {
                taken = base64_decode_groups_avx2(text + cursor.read, text_bytes - cursor.read, text + cursor.write);
            }
            cursor.read += taken;
            cursor.write += taken / 4 * 3;
            taken = decode_quads(text + cursor.read, text_bytes - cursor.read, text + cursor.write);
            cursor.read += taken;
            cursor.write += taken / 4 * 3;
        }
        assert(cursor.write <= cursor.read);
        is_going = cursor.read < text_bytes && decode_one(&cursor);
    }
    bool is_whole = decode_end(&cursor);
    *decoded_bytes = cursor.write;
    return is_whole;
}
