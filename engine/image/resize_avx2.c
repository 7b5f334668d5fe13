/* resize_avx2: the two passes of resize with 256-bit vectors.
 *
 * A weight does not fit the 16 bits of a multiply-add, so it is split: weight = high * 2^14 + low, 0 <= low < 2^14.
 * Both sums and their combination wrap modulo 2^32, and the true sum fits 32 bits: the result is exact.
 */
#include "engine/image/resize.h"

#include <immintrin.h>
#include <string.h>

enum { CHANNELS = 3, CHUNK_BYTES = 16, LOW_MASK = (1 << RESIZE_SPLIT_BITS) - 1 };

/* (low, high) sums -> rounded, shifted values of 8 bytes' worth, as 32 bits. */
static inline __m256i finish(__m256i low, __m256i high)
{
    __m256i sum = _mm256_add_epi32(low, _mm256_slli_epi32(high, RESIZE_SPLIT_BITS));

    sum = _mm256_add_epi32(sum, _mm256_set1_epi32(1 << (RESIZE_WEIGHT_BITS - 1)));
    return _mm256_srai_epi32(sum, RESIZE_WEIGHT_BITS);
}

static inline void store_pixel(unsigned char *out, __m256i low, __m256i high, size_t bytes)
{
    /* The halves hold the sums over taps 0, 1 and 2, 3 of each group; rounding is added once, so join before. */
    __m128i low_sum = _mm_add_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    __m128i high_sum = _mm_add_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    __m128i sum = _mm_add_epi32(low_sum, _mm_slli_epi32(high_sum, RESIZE_SPLIT_BITS));

    sum = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(1 << (RESIZE_WEIGHT_BITS - 1))), RESIZE_WEIGHT_BITS);
    sum = _mm_packus_epi16(_mm_packs_epi32(sum, sum), sum);
    int32_t pixel = _mm_cvtsi128_si32(sum);
    memcpy(out, &pixel, bytes);
}

static inline void horizontal_pixel(const unsigned char *const *sources, unsigned char *const *outs,
                                    const struct resize_axis *axis, uint32_t i, size_t store_bytes)
{
    /* Of four pixels RGBRGBRGBRGB: pairs R0R1 G0G1 B0B1 in the low half, R2R3 G2G3 B2B3 in the high half, 16 bits
     * each. */
    const __m256i spread = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7,
                                            -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const __m256i low_pick = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m256i high_pick = _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3);
    const int32_t *weights = axis->weights + (size_t)i * axis->tap_stride;
    size_t offset = (size_t)axis->first[i] * CHANNELS;
    __m256i low[RESIZE_ROWS], high[RESIZE_ROWS];

    for (uint32_t row = 0; row < RESIZE_ROWS; row++) {
        low[row] = high[row] = _mm256_setzero_si256();
    }
    for (uint32_t tap = 0; tap < axis->tap_counts[i]; tap += 4, offset += 4 * CHANNELS) {
        __m128i weight = _mm_loadu_si128((const __m128i *)(const void *)(weights + tap));
        __m256i split = _mm256_castsi128_si256(_mm_packs_epi32(_mm_and_si128(weight, _mm_set1_epi32(LOW_MASK)),
                                                               _mm_srai_epi32(weight, RESIZE_SPLIT_BITS)));
        __m256i weight_low = _mm256_permutevar8x32_epi32(split, low_pick);
        __m256i weight_high = _mm256_permutevar8x32_epi32(split, high_pick);
        for (uint32_t row = 0; row < RESIZE_ROWS; row++) {
            __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(sources[row] + offset));
            __m256i pairs = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), spread);
            low[row] = _mm256_add_epi32(low[row], _mm256_madd_epi16(pairs, weight_low));
            high[row] = _mm256_add_epi32(high[row], _mm256_madd_epi16(pairs, weight_high));
        }
    }
    for (uint32_t row = 0; row < RESIZE_ROWS; row++) {
        store_pixel(outs[row] + (size_t)i * CHANNELS, low[row], high[row], store_bytes);
    }
}

static void horizontal_avx2(const unsigned char *const *sources, unsigned char *const *outs,
                            const struct resize_axis *axis)
{
    for (uint32_t i = 0; i + 1 < axis->out_count; i++) {
        horizontal_pixel(sources, outs, axis, i, 4); /* the fourth byte is overwritten by the next pixel */
    }
    horizontal_pixel(sources, outs, axis, axis->out_count - 1, CHANNELS);
}

static void vertical_avx2(const unsigned char *const *rows, const int32_t *weights, uint32_t tap_count,
                          size_t row_bytes, unsigned char *out)
{
    for (size_t at = 0; at < row_bytes; at += CHUNK_BYTES) {
        __m256i low[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        __m256i high[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        for (uint32_t tap = 0; tap < tap_count; tap += 2) {
            int32_t pair_low = (weights[tap] & LOW_MASK) | (weights[tap + 1] & LOW_MASK) << 16;
            uint32_t high_first = (uint32_t)(weights[tap] >> RESIZE_SPLIT_BITS) & 0xFFFF;
            uint32_t high_second = (uint32_t)(weights[tap + 1] >> RESIZE_SPLIT_BITS) << 16;
            __m256i weight_low = _mm256_set1_epi32(pair_low);
            __m256i weight_high = _mm256_set1_epi32((int32_t)(high_first | high_second));
            __m128i first = _mm_loadu_si128((const __m128i *)(const void *)(rows[tap] + at));
            __m128i second = _mm_loadu_si128((const __m128i *)(const void *)(rows[tap + 1] + at));
            __m256i pairs[2] = {_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(first, second)),
                                _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(first, second))};
            for (int half = 0; half < 2; half++) {
                low[half] = _mm256_add_epi32(low[half], _mm256_madd_epi16(pairs[half], weight_low));
                high[half] = _mm256_add_epi32(high[half], _mm256_madd_epi16(pairs[half], weight_high));
            }
        }
        /* packs works within 128-bit halves: 0-3 8-11 | 4-7 12-15; put them in order again. */
        __m256i words = _mm256_packs_epi32(finish(low[0], high[0]), finish(low[1], high[1]));
        words = _mm256_permute4x64_epi64(words, 0xD8);
        __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        if (row_bytes - at >= CHUNK_BYTES) {
            _mm_storeu_si128((__m128i *)(void *)(out + at), bytes);
        } else {
            unsigned char tail[CHUNK_BYTES];
            _mm_storeu_si128((__m128i *)(void *)tail, bytes);
            memcpy(out + at, tail, row_bytes - at);
        }
    }
}

const struct resize_path resize_path_avx2 = {"avx2", horizontal_avx2, vertical_avx2};
