/* convert: row by row. */
#include "kernels/cpu/cpu.h"

#include <string.h>

static void convert_rows(const void *arguments, uint32_t first, uint32_t end)
{
    const struct convert_args *args = arguments;

    for (size_t r = first; r < end; r++) {
        const void *in = cpu_at(args->in, args->in_type, r * args->in_stride);
        void *out = cpu_at_out(args->out, args->out_type, r * args->out_stride);
        if (args->in_type == args->out_type) {
            memcpy(out, in, args->width * kernel_type_bytes(args->in_type));
        } else if (args->in_type == TYPE_F32) {
            cpu_kernels->narrow(out, in, args->width);
        } else {
            cpu_kernels->widen(out, in, args->width);
        }
    }
}

void cpu_convert(const void *arguments, struct team *team, void *workspace)
{
    const struct convert_args *args = arguments;

    (void)workspace;
    cpu_rows(team, convert_rows, args, args->rows, args->width);
}
