/* linear_swiglu, the oracle: two dot products an output, summed in double. */
#include "kernels/implementations.h"
#include "kernels/ref/dot.h"
#include "kernels/ref/operand.h"

#include <math.h>

void ref_linear_swiglu(const void *arguments)
{
    const struct linear_swiglu_args *args = arguments;

    for (size_t r = 0; r < args->rows; r++) {
        for (uint32_t o = 0; o < args->gate->out; o++) {
            double g = ref_dot(args->gate, args->gate_bias, o, args->in, r * args->in_stride);
            double u = ref_dot(args->up, args->up_bias, o, args->in, r * args->in_stride);
            operand_put(args->out, args->gate->type, r * args->out_stride + o, g / (1 + exp(-g)) * u);
        }
    }
}
