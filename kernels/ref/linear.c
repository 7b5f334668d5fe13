/* linear, the oracle: one dot product an output, summed in double. */
#include "kernels/implementations.h"
#include "kernels/ref/dot.h"
#include "kernels/ref/operand.h"

void ref_linear(const void *arguments)
{
    const struct linear_args *args = arguments;

    for (size_t r = 0; r < args->rows; r++) {
        for (uint32_t o = 0; o < args->weight->out; o++) {
            operand_put(args->out, args->out_type, r * args->out_stride + o,
                        ref_dot(args->weight, args->bias, o, args->in, r * args->in_stride));
        }
    }
}
