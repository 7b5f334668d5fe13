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

/* e^x, to about one unit in the last place; 0 from -87 down, finite above 88. */
LANES_INLINE lanes lanes_exp(lanes x)
{
    lanes held = lanes_min(lanes_max(x, lanes_all(-87.0f)), lanes_all(88.0f)); /* denormals take a slow path */
    lanes n = lanes_round(lanes_mul(held, lanes_all(1.44269504f)));
    lanes r = lanes_fma(n, lanes_all(-0.693145752f), held); /* ln 2 in two parts: the first has trailing zeros */
    r = lanes_fma(n, lanes_all(-1.42860677e-6f), r);

    lanes p = lanes_all(1.0f / 5040);
    p = lanes_fma(p, r, lanes_all(1.0f / 720));
    p = lanes_fma(p, r, lanes_all(1.0f / 120));
    p = lanes_fma(p, r, lanes_all(1.0f / 24));
    p = lanes_fma(p, r, lanes_all(1.0f / 6));
    p = lanes_fma(p, r, lanes_all(0.5f));
    p = lanes_fma(p, r, lanes_all(1));
    p = lanes_fma(p, r, lanes_all(1));
    return lanes_keep_above(lanes_scale(p, n), held, -87.0f);
}

/* 2^x for x <= 0, 1 at 0, 0 from -126 down: softmax weights, of which the masked vanish. is_short: to 3e-6 of the
 * result and not 1e-7, for weights that are rounded to bf16. Polynomials of least greatest error on -1/2 .. 1/2, with 1
 * at 0. */
LANES_INLINE lanes lanes_exp2(lanes x, const bool is_short)
{
    lanes held = lanes_max(x, lanes_all(-126.0f)), n = lanes_round(held), f = lanes_sub(held, n), p;

    if (is_short) {
        p = lanes_all(0.009582848336f);
        p = lanes_fma(p, f, lanes_all(0.05590643198f));
        p = lanes_fma(p, f, lanes_all(0.2402409875f));
        p = lanes_fma(p, f, lanes_all(0.6931241921f));
    } else {
        p = lanes_all(0.0001535335938f);
        p = lanes_fma(p, f, lanes_all(0.001339887534f));
        p = lanes_fma(p, f, lanes_all(0.009618437375f));
        p = lanes_fma(p, f, lanes_all(0.05550332468f));
        p = lanes_fma(p, f, lanes_all(0.2402264791f));
        p = lanes_fma(p, f, lanes_all(0.6931472029f));
    }
    p = lanes_fma(p, f, lanes_all(1));
    return lanes_keep_above(lanes_scale(p, n), held, -126.0f);
}

#endif
