/* convert, the oracle. */
#include "kernels/implementations.h"
#include "kernels/ref/operand.h"

void ref_convert(const void *arguments)
{
    const struct convert_args *args = arguments;

    for (size_t r = 0; r < args->rows; r++) {
        for (uint32_t i = 0; i < args->width; i++) {
            operand_put(args->out, args->out_type, r * args->out_stride + i,
                        operand_get(args->in, args->in_type, r * args->in_stride + i));
        }
    }
}
