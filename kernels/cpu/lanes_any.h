/* lanes_any: sixteen floats in plain C, for any machine. Included by lanes.h. */
#ifndef KERNELS_CPU_LANES_ANY_H
#define KERNELS_CPU_LANES_ANY_H

typedef struct {
    float lane[LANES];
} lanes;

/* out.lane[i] = expression, for each lane i. */
#define EACH_LANE(out, expression)                                                                                     \
    do {                                                                                                               \
        for (int i = 0; i < LANES; i++)                                                                                \
            (out).lane[i] = expression;                                                                                \
    } while (0)

LANES_INLINE lanes lanes_all(float value)
{
    lanes out;

    EACH_LANE(out, value);
    return out;
}

LANES_INLINE lanes lanes_load(const float *in)
{
    lanes out;

    EACH_LANE(out, in[i]);
    return out;
}

LANES_INLINE void lanes_store(float *out, lanes value)
{
    memcpy(out, value.lane, sizeof value.lane);
}

LANES_INLINE lanes lanes_add(lanes a, lanes b)
{
    EACH_LANE(a, a.lane[i] + b.lane[i]);
    return a;
}

LANES_INLINE lanes lanes_sub(lanes a, lanes b)
{
    EACH_LANE(a, a.lane[i] - b.lane[i]);
    return a;
}

LANES_INLINE lanes lanes_mul(lanes a, lanes b)
{
    EACH_LANE(a, a.lane[i] * b.lane[i]);
    return a;
}

LANES_INLINE lanes lanes_div(lanes a, lanes b)
{
    EACH_LANE(a, a.lane[i] / b.lane[i]);
    return a;
}

/* a * b + c; rounded twice here: a fused multiply-add without hardware costs a library call. */
LANES_INLINE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    EACH_LANE(c, a.lane[i] * b.lane[i] + c.lane[i]);
    return c;
}

/* b where a is NaN. */
LANES_INLINE lanes lanes_max(lanes a, lanes b)
{
    EACH_LANE(a, a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]);
    return a;
}

LANES_INLINE lanes lanes_min(lanes a, lanes b)
{
    EACH_LANE(a, a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]);
    return a;
}

LANES_INLINE lanes lanes_round(lanes x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    lanes shifted;

    EACH_LANE(shifted, x.lane[i] + magic);
    EACH_LANE(x, shifted.lane[i] - magic);
    return x;
}

/* p * 2^n, n an integer in -126 .. 127. */
LANES_INLINE lanes lanes_scale(lanes p, lanes n)
{
    EACH_LANE(p, p.lane[i] * float_of_bits((uint32_t)((int32_t)n.lane[i] + 127) << 23));
    return p;
}

/* value where x > limit, else 0. */
LANES_INLINE lanes lanes_keep_above(lanes value, lanes x, float limit)
{
    EACH_LANE(value, x.lane[i] > limit ? value.lane[i] : 0);
    return value;
}

/* In halves: lane i with i + 8, then + 4, + 2, + 1. */
LANES_INLINE float lanes_sum(lanes value)
{
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            value.lane[i] += value.lane[i + half];
        }
    }
    return value.lane[0];
}

LANES_INLINE float lanes_max_lane(lanes value)
{
    float max = value.lane[0];

    for (int i = 1; i < LANES; i++) {
        max = value.lane[i] > max ? value.lane[i] : max;
    }
    return max;
}

LANES_INLINE lanes lanes_load_bf16(const uint16_t *in)
{
    lanes out;

    EACH_LANE(out, bf16_widen(in[i]));
    return out;
}

LANES_INLINE void lanes_store_bf16(uint16_t *out, lanes value)
{
    for (int i = 0; i < LANES; i++) {
        out[i] = bf16_narrow(value.lane[i]);
    }
}

LANES_INLINE void lanes_store_weights(uint16_t *out, lanes value)
{
    lanes_store_bf16(out, value);
}

/* acc + the products of sixteen bf16 pairs [16][2] with one pair, widened beforehand. */
LANES_INLINE lanes lanes_dot_pair(lanes acc, const void *pairs, const void *pair)
{
    const uint16_t *weight = pairs;
    const float *in = pair;

    EACH_LANE(acc, acc.lane[i] + bf16_widen(weight[2 * i]) * in[0]);
    EACH_LANE(acc, acc.lane[i] + bf16_widen(weight[2 * i + 1]) * in[1]);
    return acc;
}

#endif
