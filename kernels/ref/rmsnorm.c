/* rmsnorm, the oracle: the formula of kernels.h in double. */
#include "kernels/implementations.h"
#include "kernels/ref/operand.h"

#include <math.h>

void ref_rmsnorm(const void *arguments)
{
    const struct rmsnorm_args *args = arguments;
    uint32_t width = args->width;

    for (size_t r = 0; r < args->rows; r++) {
        const float *in = args->in + r * width;
        double squares = 0;
        for (uint32_t i = 0; i < width; i++) {
            squares += (double)in[i] * in[i];
        }
        double factor = 1 / sqrt(squares / width + args->eps);
        for (uint32_t i = 0; i < width; i++) {
            operand_put(args->out, args->out_type, r * width + i, args->weight[i] * (in[i] * factor));
        }
    }
}
