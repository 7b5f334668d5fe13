/* bf16: the upper half of a float. */
#ifndef KERNELS_BF16_H
#define KERNELS_BF16_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float bf16_widen(uint16_t half)
{
    return float_of_bits((uint32_t)half << 16);
}

/* Rounds to nearest, ties to even. A NaN keeps its upper bits and becomes quiet. */
static inline uint16_t bf16_narrow(float value)
{
    uint32_t bits = bits_of_float(value);

    if ((bits & 0x7fffffff) > 0x7f800000) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
