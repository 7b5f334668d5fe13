/* base64_avx2: whole groups of 32 digits, with 256-bit vectors.
 */
#include "engine/image/base64.h"

#include <immintrin.h>

enum { GROUP_DIGITS = 32, GROUP_BYTES = 24 };

static inline __m256i is_between(__m256i bytes, char first, char last)
{
    return _mm256_and_si256(_mm256_cmpgt_epi8(bytes, _mm256_set1_epi8((char)(first - 1))),
                            _mm256_cmpgt_epi8(_mm256_set1_epi8((char)(last + 1)), bytes));
}

static inline __m256i both(__m256i mask, char value)
{
    return _mm256_and_si256(mask, _mm256_set1_epi8(value));
}

size_t base64_decode_groups_avx2(const unsigned char *text, size_t text_bytes, unsigned char *out)
{
    /* Four 24-bit numbers, each in 32 bits with its low byte first -> 12 bytes in the order of the text. */
    const __m256i order = _mm256_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1, 2, 1, 0, 6, 5, 4, 10,
                                           9, 8, 14, 13, 12, -1, -1, -1, -1);
    const __m256i join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    size_t read = 0;

    for (; text_bytes - read >= GROUP_DIGITS; read += GROUP_DIGITS, out += GROUP_BYTES) {
        __m256i digits = _mm256_loadu_si256((const __m256i *)(const void *)(text + read));
        __m256i is_upper = is_between(digits, 'A', 'Z'), is_lower = is_between(digits, 'a', 'z');
        __m256i is_decimal = is_between(digits, '0', '9'), is_plus = is_between(digits, '+', '+');
        __m256i is_slash = is_between(digits, '/', '/');
        __m256i is_digit = _mm256_or_si256(_mm256_or_si256(_mm256_or_si256(is_upper, is_lower), is_decimal),
                                           _mm256_or_si256(is_plus, is_slash));
        if (_mm256_movemask_epi8(is_digit) != -1) {
            break;
        }
        __m256i shift = _mm256_or_si256(_mm256_or_si256(_mm256_or_si256(both(is_upper, -'A'), both(is_lower, 26 - 'a')),
                                                        both(is_decimal, 52 - '0')),
                                        _mm256_or_si256(both(is_plus, 62 - '+'), both(is_slash, 63 - '/')));
        __m256i values = _mm256_add_epi8(digits, shift);
        __m256i pairs = _mm256_maddubs_epi16(values, _mm256_set1_epi16(0x0140)); /* first * 64 + second */
        __m256i quads = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00011000)); /* first * 4096 + second */
        __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(quads, order), join);
        _mm256_storeu_si256((__m256i *)(void *)out, bytes);
    }
    return read;
}
