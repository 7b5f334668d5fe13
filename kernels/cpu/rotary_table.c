/* rotary_table: the angle is a float product, as in the reference model; libm's cosf and sinf reduce it exactly. */
#include "kernels/cpu/cpu.h"

#include <math.h>

static void table_rows(const void *arguments, uint32_t first, uint32_t end)
{
    const struct rotary_table_args *args = arguments;

    for (size_t r = first; r < end; r++) {
        for (uint32_t j = 0; j < args->half; j++) {
            float angle = (float)args->positions[r][args->axis[j]] * args->frequency[j];
            args->cos[r * args->half + j] = cosf(angle);
            args->sin[r * args->half + j] = sinf(angle);
        }
    }
}

void cpu_rotary_table(const void *arguments, struct team *team, void *workspace)
{
    const struct rotary_table_args *args = arguments;

    (void)workspace;
    cpu_rows(team, table_rows, args, args->rows, (uint64_t)args->half * 64);
}
