/* gelu_erf, the oracle: the formula of kernels.h in double. */
#include "kernels/implementations.h"
#include "kernels/ref/operand.h"

#include <math.h>

void ref_gelu_erf(const void *arguments)
{
    const struct gelu_erf_args *args = arguments;

    for (size_t i = 0; i < (size_t)args->rows * args->width; i++) {
        double x = args->in[i];
        operand_put(args->out, args->out_type, i, x / 2 * erfc(-x * sqrt(0.5)));
    }
}
