/* lanes: sixteen floats, held as the instruction set of the including file holds them best.
 *
 * The kernels are written once, in terms of these few operations (kernel_body.h), and compiled once for each level.
 * Every operation works on each lane alone, except lanes_sum and lanes_max_lane, whose order is fixed.
 */
#ifndef KERNELS_CPU_LANES_H
#define KERNELS_CPU_LANES_H

#include "kernels/bf16.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LANES_INLINE static inline __attribute__((always_inline))

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 64")
#endif

enum { LANES = 16 };

#if defined(__AVX512F__)
#include "kernels/cpu/lanes_512.h"
#elif defined(__AVX2__)
#include "kernels/cpu/lanes_256.h"
#else
#include "kernels/cpu/lanes_any.h"
#endif

/* The first count (1 .. 16) lanes; the others are 0. */
LANES_INLINE lanes lanes_load_some(const float *in, uint32_t count)
{
    float whole[LANES] = {0};

    memcpy(whole, in, count * sizeof *in);
    return lanes_load(whole);
}

LANES_INLINE void lanes_store_some(float *out, lanes value, uint32_t count)
{
    float whole[LANES];

    lanes_store(whole, value);
    memcpy(out, whole, count * sizeof *out);
}

LANES_INLINE lanes lanes_load_bf16_some(const uint16_t *in, uint32_t count)
{
    uint16_t whole[LANES] = {0};

    memcpy(whole, in, count * sizeof *in);
    return lanes_load_bf16(whole);
}

LANES_INLINE void lanes_store_bf16_some(uint16_t *out, lanes value, uint32_t count)
{
    uint16_t whole[LANES];

    lanes_store_bf16(whole, value);
    memcpy(out, whole, count * sizeof *out);
}

/* e^x, to about one unit in the last place; 0 from -87 down (so masked scores vanish). */
LANES_INLINE lanes lanes_exp(lanes x)
{
    lanes n = lanes_exponent(&x);                        /* x is now within what floats can hold */
    lanes r = lanes_fma(n, lanes_all(-0.693145752f), x); /* ln 2 in two parts: the first has trailing zeros */
    r = lanes_fma(n, lanes_all(-1.42860677e-6f), r);

    lanes p = lanes_all(1.0f / 5040);
    p = lanes_fma(p, r, lanes_all(1.0f / 720));
    p = lanes_fma(p, r, lanes_all(1.0f / 120));
    p = lanes_fma(p, r, lanes_all(1.0f / 24));
    p = lanes_fma(p, r, lanes_all(1.0f / 6));
    p = lanes_fma(p, r, lanes_all(0.5f));
    p = lanes_fma(p, r, lanes_all(1));
    p = lanes_fma(p, r, lanes_all(1));
    return lanes_scale(p, n, x);
}

#endif
