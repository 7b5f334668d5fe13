/* lanes_256: sixteen floats in two AVX registers. Included by lanes.h. */
#ifndef KERNELS_CPU_LANES_256_H
#define KERNELS_CPU_LANES_256_H

#include <immintrin.h>

typedef struct {
    __m256 low, high;
} lanes;

LANES_INLINE lanes lanes_all(float value)
{
    return (lanes){_mm256_set1_ps(value), _mm256_set1_ps(value)};
}

LANES_INLINE lanes lanes_load(const float *in)
{
    return (lanes){_mm256_loadu_ps(in), _mm256_loadu_ps(in + 8)};
}

LANES_INLINE void lanes_store(float *out, lanes value)
{
    _mm256_storeu_ps(out, value.low);
    _mm256_storeu_ps(out + 8, value.high);
}

LANES_INLINE lanes lanes_add(lanes a, lanes b)
{
    return (lanes){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

LANES_INLINE lanes lanes_sub(lanes a, lanes b)
{
    return (lanes){_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

LANES_INLINE lanes lanes_mul(lanes a, lanes b)
{
    return (lanes){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

LANES_INLINE lanes lanes_div(lanes a, lanes b)
{
    return (lanes){_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}

/* a * b + c, rounded once where the machine can. */
LANES_INLINE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return (lanes){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

/* b where a is NaN. */
LANES_INLINE lanes lanes_max(lanes a, lanes b)
{
    return (lanes){_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

LANES_INLINE lanes lanes_min(lanes a, lanes b)
{
    return (lanes){_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

LANES_INLINE lanes lanes_round(lanes x)
{
    return (lanes){_mm256_round_ps(x.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                   _mm256_round_ps(x.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

LANES_INLINE __m256 half_scale(__m256 p, __m256 n)
{
    __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);

    return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

/* p * 2^n, n an integer in -126 .. 127. */
LANES_INLINE lanes lanes_scale(lanes p, lanes n)
{
    return (lanes){half_scale(p.low, n.low), half_scale(p.high, n.high)};
}

/* value where x > limit, else 0. */
LANES_INLINE lanes lanes_keep_above(lanes value, lanes x, float limit)
{
    __m256 all = _mm256_set1_ps(limit);

    return (lanes){_mm256_and_ps(value.low, _mm256_cmp_ps(x.low, all, _CMP_GT_OQ)),
                   _mm256_and_ps(value.high, _mm256_cmp_ps(x.high, all, _CMP_GT_OQ))};
}

/* In halves: lane i with i + 8, then + 4, + 2, + 1. */
LANES_INLINE float lanes_sum(lanes value)
{
    __m256 eight = _mm256_add_ps(value.low, value.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));

    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

LANES_INLINE float lanes_max_lane(lanes value)
{
    __m256 eight = _mm256_max_ps(value.low, value.high);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));

    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

LANES_INLINE __m256 half_load_bf16(const uint16_t *in)
{
    __m256i halves = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)in));

    return _mm256_castsi256_ps(_mm256_slli_epi32(halves, 16));
}

LANES_INLINE lanes lanes_load_bf16(const uint16_t *in)
{
    return (lanes){half_load_bf16(in), half_load_bf16(in + 8)};
}

/* Upper halves, rounded, in 32-bit lanes. */
LANES_INLINE __m256i half_narrow(__m256 value)
{
    __m256i bits = _mm256_castps_si256(value), upper = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    __m256 is_nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);

    return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan));
}

LANES_INLINE void lanes_store_bf16(uint16_t *out, lanes value)
{
    __m256i packed = _mm256_packus_epi32(half_narrow(value.low), half_narrow(value.high));

    /* The pack works on 128-bit halves: put the four quarters in order. */
    _mm256_storeu_si256((__m256i *)(void *)out, _mm256_permute4x64_epi64(packed, 0xd8));
}

LANES_INLINE void lanes_store_weights(uint16_t *out, lanes value)
{
    lanes_store_bf16(out, value);
}

LANES_INLINE __m256 half_dot_pair(__m256 acc, __m256i pairs, const float *in)
{
    __m256i upper = _mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000));

    acc = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)), _mm256_broadcast_ss(in), acc);
    return _mm256_fmadd_ps(_mm256_castsi256_ps(upper), _mm256_broadcast_ss(in + 1), acc);
}

/* acc + the products of sixteen bf16 pairs [16][2] with one pair, widened beforehand. */
LANES_INLINE lanes lanes_dot_pair(lanes acc, const void *pairs, const void *pair)
{
    const __m256i *halves = pairs;

    return (lanes){half_dot_pair(acc.low, _mm256_loadu_si256(halves), pair),
                   half_dot_pair(acc.high, _mm256_loadu_si256(halves + 1), pair)};
}

#endif
