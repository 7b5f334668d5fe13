/* gelu_erf: element by element. */
#include "kernels/cpu/cpu.h"

static void gelu_rows(const void *arguments, uint32_t first, uint32_t end)
{
    const struct gelu_erf_args *args = arguments;

    for (size_t r = first; r < end; r++) {
        cpu_kernels->gelu_erf(cpu_at_out(args->out, args->out_type, r * args->width), args->out_type,
                              args->in + r * args->width, args->width);
    }
}

void cpu_gelu_erf(const void *arguments, struct team *team, void *workspace)
{
    const struct gelu_erf_args *args = arguments;

    (void)workspace;
    cpu_rows(team, gelu_rows, args, args->rows, (uint64_t)args->width * 4);
}
