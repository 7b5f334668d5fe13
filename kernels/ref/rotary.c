/* rotary, the oracle: the formula of kernels.h in double. */
#include "kernels/implementations.h"

void ref_rotary(const void *arguments)
{
    const struct rotary_args *args = arguments;
    uint32_t half = args->half;

    for (size_t r = 0; r < args->rows; r++) {
        for (size_t h = 0; h < args->heads; h++) {
            float *data = args->data + r * args->row_stride + h * 2 * half;
            for (uint32_t i = 0; i < half; i++) {
                double a = data[i], b = data[i + half];
                double c = args->cos[r * half + i], s = args->sin[r * half + i];
                data[i] = (float)(a * c - b * s);
                data[i + half] = (float)(b * c + a * s);
            }
        }
    }
}
