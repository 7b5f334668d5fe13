/* scatter_rows: whole rows, wherever the order sends them. */
#include "kernels/cpu/cpu.h"

#include <string.h>

static void scatter(const void *arguments, uint32_t first, uint32_t end)
{
    const struct scatter_rows_args *args = arguments;
    size_t row_bytes = args->width * kernel_type_bytes(args->type);

    for (size_t r = first; r < end; r++) {
        uint32_t row = args->order[r];
        unsigned char *page = args->pages[row / MM_PAGE_TOKENS];
        memcpy(page + row % MM_PAGE_TOKENS * row_bytes, (const unsigned char *)args->in + r * row_bytes, row_bytes);
    }
}

void cpu_scatter_rows(const void *arguments, struct team *team, void *workspace)
{
    const struct scatter_rows_args *args = arguments;

    (void)workspace;
    cpu_rows(team, scatter, args, args->rows, args->width);
}
