/* rmsnorm: row by row; sixteen partial sums of squares a row, joined in a fixed order. */
#include "kernels/cpu/cpu.h"

static void rmsnorm_rows(const void *arguments, uint32_t first, uint32_t end)
{
    const struct rmsnorm_args *args = arguments;

    for (size_t r = first; r < end; r++) {
        cpu_kernels->rmsnorm(cpu_at_out(args->out, args->out_type, r * args->width), args->out_type,
                             args->in + r * args->width, args->weight, args->width, args->eps);
    }
}

void cpu_rmsnorm(const void *arguments, struct team *team, void *workspace)
{
    const struct rmsnorm_args *args = arguments;

    (void)workspace;
    cpu_rows(team, rmsnorm_rows, args, args->rows, args->width);
}
