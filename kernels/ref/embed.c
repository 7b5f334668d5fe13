/* embed, the oracle: the formula of kernels.h, element by element. */
#include "kernels/implementations.h"
#include "kernels/ref/operand.h"

void ref_embed(const void *arguments)
{
    const struct embed_args *args = arguments;
    uint32_t width = args->table->in;

    for (uint32_t r = 0; r < args->rows; r++) {
        const void *feature = args->features != NULL ? args->features[r] : NULL;
        for (uint32_t i = 0; i < width; i++) {
            args->out[(size_t)r * width + i] = feature != NULL
                                                   ? (float)operand_get(feature, args->table->type, i)
                                                   : packed_matrix_get(args->table, (uint32_t)args->ids[r], i);
        }
    }
}
