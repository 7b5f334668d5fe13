/* linear_add, the oracle: one dot product an output, summed in double. */
#include "kernels/implementations.h"
#include "kernels/ref/dot.h"
#include "kernels/ref/operand.h"

void ref_linear_add(const void *arguments)
{
    const struct linear_args *args = arguments;
    float *out = args->out;

    for (size_t r = 0; r < args->rows; r++) {
        for (uint32_t o = 0; o < args->weight->out; o++) {
            float *place = out + r * args->out_stride + o;
            *place = (float)(*place + ref_dot(args->weight, args->bias, o, args->in, r * args->in_stride));
        }
    }
}
