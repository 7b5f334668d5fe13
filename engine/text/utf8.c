/* utf8: one code point at a time, strict as RFC 3629.
 *
 * Nothing is kept between calls. Table 3-7 of the Unicode standard is the whole of it: the lead byte decides the number
 * of bytes and the range of the second one; every later byte is 80..BF.
 */
#include "engine/text/utf8.h"

#include <assert.h>
#include <string.h>

static int sequence_bytes(unsigned char lead)
{
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4) {
        return 0; /* a trailing byte, an overlong form, or beyond U+10FFFF */
    }
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

static int second_byte_fits(unsigned char lead, unsigned char second)
{
    switch (lead) {
    case 0xe0:
        return second >= 0xa0 && second <= 0xbf; /* not overlong */
    case 0xed:
        return second >= 0x80 && second <= 0x9f; /* not a surrogate */
    case 0xf0:
        return second >= 0x90 && second <= 0xbf;
    case 0xf4:
        return second >= 0x80 && second <= 0x8f;
    default:
        return second >= 0x80 && second <= 0xbf;
    }
}

int utf8_decode(const char *bytes, size_t length, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)bytes;
    if (length == 0) {
        return 0;
    }
    int need = sequence_bytes(s[0]);
    if (need <= 1) {
        *code = s[0];
        return need == 1 ? 1 : -1;
    }
    if (length < 2) {
        return 0;
    }
    if (!second_byte_fits(s[0], s[1])) {
        return -1;
    }
    uint32_t value = (uint32_t)(s[0] & (0xff >> (need + 1))) << 6 | (s[1] & 0x3fU);
    for (int i = 2; i < need; i++) {
        if ((size_t)i >= length) {
            return 0;
        }
        if ((s[i] & 0xc0) != 0x80) {
            return -i;
        }
        value = value << 6 | (s[i] & 0x3fU);
    }
    *code = value;
    return need;
}

int utf8_encode(uint32_t code, char *out)
{
    assert(code <= UTF8_CODE_MAX && (code < 0xd800 || code > 0xdfff));

    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    int bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = bytes - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)((0xf00 >> bytes & 0xff) | code);
    return bytes;
}

size_t utf8_valid_bytes(const char *bytes, size_t length)
{
    size_t at = 0;
    while (at < length) {
        uint64_t word;
        if (length - at >= sizeof word) {
            memcpy(&word, bytes + at, sizeof word);
            if ((word & 0x8080808080808080U) == 0) {
                at += sizeof word;
                continue;
            }
        }
        uint32_t code;
        int step = utf8_decode(bytes + at, length - at, &code);
        if (step <= 0) {
            break;
        }
        at += (size_t)step;
    }
    assert(at <= length);
    return at;
}
