/* dot: one output of a linear layer, in double. */
#ifndef KERNELS_REF_DOT_H
#define KERNELS_REF_DOT_H

#include "kernels/ref/operand.h"

/* bias[row] + weight[row] . in[first ..]. */
static inline double ref_dot(const struct packed_matrix *weight, const float *bias, uint32_t row, const void *in,
                             size_t first)
{
    double sum = bias != NULL ? (double)bias[row] : 0;

    for (uint32_t i = 0; i < weight->in; i++) {
        sum += (double)packed_matrix_get(weight, row, i) * operand_get(in, weight->type, first + i);
    }
    return sum;
}

#endif
