/* rotary_table, the oracle: the angle is a float product, as in the reference model; its cosine and sine in double. */
#include "kernels/implementations.h"

#include <math.h>

void ref_rotary_table(const void *arguments)
{
    const struct rotary_table_args *args = arguments;

    for (size_t r = 0; r < args->rows; r++) {
        for (uint32_t j = 0; j < args->half; j++) {
            float angle = (float)args->positions[r][args->axis[j]] * args->frequency[j];
            args->cos[r * args->half + j] = (float)cos((double)angle);
            args->sin[r * args->half + j] = (float)sin((double)angle);
        }
    }
}
