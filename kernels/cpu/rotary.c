/* rotary: head by head, in place. */
#include "kernels/cpu/cpu.h"

static void rotary_rows(const void *arguments, uint32_t first, uint32_t end)
{
    const struct rotary_args *args = arguments;

    for (size_t r = first; r < end; r++) {
        for (size_t h = 0; h < args->heads; h++) {
            cpu_kernels->rotary(args->data + r * args->row_stride + h * 2 * args->half, args->cos + r * args->half,
                                args->sin + r * args->half, args->half);
        }
    }
}

void cpu_rotary(const void *arguments, struct team *team, void *workspace)
{
    const struct rotary_args *args = arguments;

    (void)workspace;
    cpu_rows(team, rotary_rows, args, args->rows, (uint64_t)args->heads * args->half * 2);
}
