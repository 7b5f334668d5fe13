/* resize_avx512: the two passes of resize with 512-bit vectors; the arithmetic is that of resize_avx2.
 */
#include "engine/image/resize.h"

#include <immintrin.h>
#include <string.h>

enum { CHANNELS = 3, CHUNK_BYTES = 32, LOW_MASK = (1 << RESIZE_SPLIT_BITS) - 1 };

static inline void store_pixel(unsigned char *out, __m256i low, __m256i high, size_t bytes)
{
    __m128i low_sum = _mm_add_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    __m128i high_sum = _mm_add_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    __m128i sum = _mm_add_epi32(low_sum, _mm_slli_epi32(high_sum, RESIZE_SPLIT_BITS));

    sum = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(1 << (RESIZE_WEIGHT_BITS - 1))), RESIZE_WEIGHT_BITS);
    sum = _mm_packus_epi16(_mm_packs_epi32(sum, sum), sum);
    int32_t pixel = _mm_cvtsi128_si32(sum);
    memcpy(out, &pixel, bytes);
}

/* Two rows a vector, one in each half. */
static inline void horizontal_pixel(const unsigned char *const *sources, unsigned char *const *outs,
                                    const struct resize_axis *axis, uint32_t i, size_t store_bytes)
{
    const __m512i spread =
        _mm512_broadcast_i64x4(_mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1,
                                                7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
    const __m512i low_pick = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1);
    const __m512i high_pick = _mm512_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3, 2, 2, 2, 2, 3, 3, 3, 3);
    const int32_t *weights = axis->weights + (size_t)i * axis->tap_stride;
    size_t offset = (size_t)axis->first[i] * CHANNELS;
    __m512i low[RESIZE_ROWS / 2], high[RESIZE_ROWS / 2];

    for (uint32_t pair = 0; pair < RESIZE_ROWS / 2; pair++) {
        low[pair] = high[pair] = _mm512_setzero_si512();
    }
    for (uint32_t tap = 0; tap < axis->tap_counts[i]; tap += 4, offset += 4 * CHANNELS) {
        __m128i weight = _mm_loadu_si128((const __m128i *)(const void *)(weights + tap));
        __m512i split = _mm512_castsi128_si512(_mm_packs_epi32(_mm_and_si128(weight, _mm_set1_epi32(LOW_MASK)),
                                                               _mm_srai_epi32(weight, RESIZE_SPLIT_BITS)));
        __m512i weight_low = _mm512_permutexvar_epi32(low_pick, split);
        __m512i weight_high = _mm512_permutexvar_epi32(high_pick, split);
        for (uint32_t pair = 0; pair < RESIZE_ROWS / 2; pair++) {
            __m128i first = _mm_loadu_si128((const __m128i *)(const void *)(sources[2 * pair] + offset));
            __m128i second = _mm_loadu_si128((const __m128i *)(const void *)(sources[2 * pair + 1] + offset));
            __m512i bytes = _mm512_mask_broadcast_i32x4(_mm512_broadcast_i32x4(first), 0xFF00, second);
            __m512i pairs = _mm512_shuffle_epi8(bytes, spread);
            low[pair] = _mm512_add_epi32(low[pair], _mm512_madd_epi16(pairs, weight_low));
            high[pair] = _mm512_add_epi32(high[pair], _mm512_madd_epi16(pairs, weight_high));
        }
    }
    for (uint32_t pair = 0; pair < RESIZE_ROWS / 2; pair++) {
        store_pixel(outs[2 * pair] + (size_t)i * CHANNELS, _mm512_castsi512_si256(low[pair]),
                    _mm512_castsi512_si256(high[pair]), store_bytes);
        store_pixel(outs[2 * pair + 1] + (size_t)i * CHANNELS, _mm512_extracti64x4_epi64(low[pair], 1),
                    _mm512_extracti64x4_epi64(high[pair], 1), store_bytes);
    }
}

static void horizontal_avx512(const unsigned char *const *sources, unsigned char *const *outs,
                              const struct resize_axis *axis)
{
    for (uint32_t i = 0; i + 1 < axis->out_count; i++) {
        horizontal_pixel(sources, outs, axis, i, 4); /* the fourth byte is overwritten by the next pixel */
    }
    horizontal_pixel(sources, outs, axis, axis->out_count - 1, CHANNELS);
}

static inline __m256i finish(__m512i low, __m512i high)
{
    __m512i sum = _mm512_add_epi32(low, _mm512_slli_epi32(high, RESIZE_SPLIT_BITS));

    sum =
        _mm512_srai_epi32(_mm512_add_epi32(sum, _mm512_set1_epi32(1 << (RESIZE_WEIGHT_BITS - 1))), RESIZE_WEIGHT_BITS);
    return _mm512_cvtepi32_epi16(sum); /* fits: |sum| < 2^9 */
}

static void vertical_avx512(const unsigned char *const *rows, const int32_t *weights, uint32_t tap_count,
                            size_t row_bytes, unsigned char *out)
{
    for (size_t at = 0; at < row_bytes; at += CHUNK_BYTES) {
        __m512i low[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
        __m512i high[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
        for (uint32_t tap = 0; tap < tap_count; tap += 2) {
            int32_t pair_low = (weights[tap] & LOW_MASK) | (weights[tap + 1] & LOW_MASK) << 16;
            uint32_t high_first = (uint32_t)(weights[tap] >> RESIZE_SPLIT_BITS) & 0xFFFF;
            uint32_t high_second = (uint32_t)(weights[tap + 1] >> RESIZE_SPLIT_BITS) << 16;
            __m512i weight_low = _mm512_set1_epi32(pair_low);
            __m512i weight_high = _mm512_set1_epi32((int32_t)(high_first | high_second));
            __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)(rows[tap] + at));
            __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)(rows[tap + 1] + at));
            /* unpack works within 128-bit halves: bytes 0-7 16-23 and 8-15 24-31. */
            __m512i pairs[2] = {_mm512_cvtepu8_epi16(_mm256_unpacklo_epi8(first, second)),
                                _mm512_cvtepu8_epi16(_mm256_unpackhi_epi8(first, second))};
            for (int half = 0; half < 2; half++) {
                low[half] = _mm512_add_epi32(low[half], _mm512_madd_epi16(pairs[half], weight_low));
                high[half] = _mm512_add_epi32(high[half], _mm512_madd_epi16(pairs[half], weight_high));
            }
        }
        /* packus works within 128-bit halves too, which undoes the order of unpack. */
        __m256i bytes = _mm256_packus_epi16(finish(low[0], high[0]), finish(low[1], high[1]));
        size_t left = row_bytes - at;
        if (left >= CHUNK_BYTES) {
            _mm256_storeu_si256((__m256i *)(void *)(out + at), bytes);
        } else {
            _mm256_mask_storeu_epi8(out + at, ((__mmask32)1 << left) - 1, bytes);
        }
    }
}

const struct resize_path resize_path_avx512 = {"avx512", horizontal_avx512, vertical_avx512};
