/* lanes_512: sixteen floats in one AVX-512 register. Included by lanes.h. */
#ifndef KERNELS_CPU_LANES_512_H
#define KERNELS_CPU_LANES_512_H

#include <immintrin.h>

typedef __m512 lanes;

LANES_INLINE lanes lanes_all(float value)
{
    return _mm512_set1_ps(value);
}

LANES_INLINE lanes lanes_load(const float *in)
{
    return _mm512_loadu_ps(in);
}

LANES_INLINE void lanes_store(float *out, lanes value)
{
    _mm512_storeu_ps(out, value);
}

LANES_INLINE lanes lanes_add(lanes a, lanes b)
{
    return _mm512_add_ps(a, b);
}

LANES_INLINE lanes lanes_sub(lanes a, lanes b)
{
    return _mm512_sub_ps(a, b);
}

LANES_INLINE lanes lanes_mul(lanes a, lanes b)
{
    return _mm512_mul_ps(a, b);
}

LANES_INLINE lanes lanes_div(lanes a, lanes b)
{
    return _mm512_div_ps(a, b);
}

/* a * b + c, rounded once where the machine can. */
LANES_INLINE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* b where a is NaN. */
LANES_INLINE lanes lanes_max(lanes a, lanes b)
{
    return _mm512_max_ps(a, b);
}

LANES_INLINE lanes lanes_min(lanes a, lanes b)
{
    return _mm512_min_ps(a, b);
}

LANES_INLINE lanes lanes_round(lanes x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* p * 2^n, n an integer in -126 .. 127. */
LANES_INLINE lanes lanes_scale(lanes p, lanes n)
{
    return _mm512_scalef_ps(p, n);
}

/* value where x > limit, else 0. */
LANES_INLINE lanes lanes_keep_above(lanes value, lanes x, float limit)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_GT_OQ), value);
}

/* In halves: lane i with i + 8, then + 4, + 2, + 1. */
LANES_INLINE float lanes_sum(lanes value)
{
    return _mm512_reduce_add_ps(value);
}

LANES_INLINE float lanes_max_lane(lanes value)
{
    return _mm512_reduce_max_ps(value);
}

LANES_INLINE lanes lanes_load_bf16(const uint16_t *in)
{
    __m512i halves = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)in));

    return _mm512_castsi512_ps(_mm512_slli_epi32(halves, 16));
}

LANES_INLINE void lanes_store_bf16(uint16_t *out, lanes value)
{
    __m512i bits = _mm512_castps_si512(value), upper = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);

    rounded = _mm512_mask_or_epi32(rounded, is_nan, upper, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256((__m256i *)(void *)out, _mm512_cvtepi32_epi16(rounded));
}

/* The same for numbers of which none is a NaN, and of which the smallest may become 0. */
LANES_INLINE void lanes_store_weights(uint16_t *out, lanes value)
{
#if defined(__AVX512BF16__)
    _mm256_storeu_si256((__m256i *)(void *)out, (__m256i)_mm512_cvtneps_pbh(value));
#else
    lanes_store_bf16(out, value);
#endif
}

/* acc + the products of sixteen bf16 pairs [16][2] with one pair. */
LANES_INLINE lanes lanes_dot_pair(lanes acc, const void *pairs, const void *pair)
{
#if defined(__AVX512BF16__)
    int32_t both;

    memcpy(&both, pair, sizeof both);
    return _mm512_dpbf16_ps(acc, (__m512bh)_mm512_loadu_si512(pairs), (__m512bh)_mm512_set1_epi32(both));
#else
    __m512i bits = _mm512_loadu_si512(pairs);
    const float *in = pair; /* widened beforehand */

    acc = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16)), _mm512_set1_ps(in[0]), acc);
    bits = _mm512_and_si512(bits, _mm512_set1_epi32((int)0xffff0000));
    return _mm512_fmadd_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(in[1]), acc);
#endif
}

#endif
