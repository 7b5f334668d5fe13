/* scatter_rows, the oracle. */
#include "kernels/implementations.h"
#include "kernels/ref/operand.h"

void ref_scatter_rows(const void *arguments)
{
    const struct scatter_rows_args *args = arguments;

    for (size_t r = 0; r < args->rows; r++) {
        uint32_t row = args->order[r];
        for (uint32_t i = 0; i < args->width; i++) {
            operand_put(args->pages[row / MM_PAGE_TOKENS], args->type, (size_t)(row % MM_PAGE_TOKENS) * args->width + i,
                        operand_get(args->in, args->type, r * args->width + i));
        }
    }
}
