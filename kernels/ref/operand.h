/* operand: how the oracle reads and writes elements: one at a time, as double. */
#ifndef KERNELS_REF_OPERAND_H
#define KERNELS_REF_OPERAND_H

#include "kernels/bf16.h"
#include "kernels/kernels.h"

static inline double operand_get(const void *data, enum kernel_type type, size_t i)
{
    return type == TYPE_F32 ? (double)((const float *)data)[i] : (double)bf16_widen(((const uint16_t *)data)[i]);
}

static inline void operand_put(void *data, enum kernel_type type, size_t i, double value)
{
    if (type == TYPE_F32) {
        ((float *)data)[i] = (float)value;
    } else {
        ((uint16_t *)data)[i] = bf16_narrow((float)value);
    }
}

/* The value after rounding to `type`. */
static inline double operand_round(double value, enum kernel_type type)
{
    return type == TYPE_F32 ? (double)(float)value : (double)bf16_widen(bf16_narrow((float)value));
}

#endif
