/* product: a tile of a linear layer: its inputs in chains of PRODUCT_IN, panel after panel.
 *
 * Always true: an output is bias-free here, and is the sum, in ascending order, of one chain for each PRODUCT_IN inputs;
 * neither the tile's rows nor its place enter into it.
 */
#include "kernels/cpu/product.h"

#include <assert.h>

size_t linear_workspace(const void *args, uint32_t worker_count)
{
    (void)args;
    return (size_t)worker_count * PRODUCT_WORKER_BYTES;
}

static uint32_t row_tiles(uint32_t rows)
{
    return (rows + PRODUCT_ROWS - 1) / PRODUCT_ROWS;
}

uint32_t product_tiles(uint32_t rows, uint32_t outs)
{
    return row_tiles(rows) * ((outs + PRODUCT_OUTS - 1) / PRODUCT_OUTS);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

struct product_tile product_tile_at(uint32_t rows, uint32_t outs, uint32_t tile_index, void *workspace,
                                    uint32_t worker_index)
{
    uint32_t row_first = tile_index % row_tiles(rows) * PRODUCT_ROWS;
    uint32_t out_first = tile_index / row_tiles(rows) * PRODUCT_OUTS;
    unsigned char *memory = (unsigned char *)workspace + (size_t)worker_index * PRODUCT_WORKER_BYTES;

    assert(row_first < rows && out_first < outs);
    return (struct product_tile){
        .row_first = row_first,
        .row_count = smaller(PRODUCT_ROWS, rows - row_first),
        .out_first = out_first,
        .out_count = smaller(PRODUCT_OUTS, outs - out_first),
        .sums = {(float *)(void *)memory, (float *)(void *)(memory + PRODUCT_SUM_BYTES)},
        .dot = memory + 2 * PRODUCT_SUM_BYTES,
    };
}

/* Rows row .. row + panel->rows of the inputs from in_first on, as the panel wants them: where they lie, or brought into
 * dot format. */
static void set_input(struct panel *panel, const struct product_tile *tile, enum kernel_type type, uint32_t row,
                      const void *in, uint32_t in_stride, uint32_t in_first, uint32_t in_count)
{
    size_t first = (size_t)(tile->row_first + row) * in_stride + in_first;

    if (cpu_dot_bytes(type) == kernel_type_bytes(type)) {
        panel->in = cpu_at(in, type, first);
        panel->in_stride_bytes = in_stride * kernel_type_bytes(type);
        return;
    }
    panel->in = tile->dot;
    panel->in_stride_bytes = PRODUCT_IN * sizeof(float);
    for (uint32_t r = 0; r < panel->rows; r++) {
        cpu_to_dot(tile->dot + r * panel->in_stride_bytes, type, cpu_at(in, type, first + (size_t)r * in_stride), type,
                   in_count);
    }
}

void product_run(const struct product_tile *tile, uint32_t which, const void *in, uint32_t in_stride,
                 const struct packed_matrix *weight)
{
    uint32_t step_inputs = weight->type == TYPE_BF16 ? 2 : 1;
    size_t element_bytes = kernel_type_bytes(weight->type), block_bytes = PACK_OUT * weight->in * element_bytes;
    uint32_t chunk_rows = cpu_dot_bytes(weight->type) == element_bytes ? PRODUCT_ROWS : PRODUCT_DOT_ROWS;
    const unsigned char *blocks = (const unsigned char *)weight->data + tile->out_first / PACK_OUT * block_bytes;
    struct panel panel = {
        .sum_stride = PRODUCT_OUTS,
        .step_bytes = PACK_OUT * step_inputs * element_bytes,
        .blocks = (tile->out_count + PACK_OUT - 1) / PACK_OUT,
    };

    for (uint32_t i = 0; i < weight->in; i += PRODUCT_IN) {
        uint32_t in_count = smaller(PRODUCT_IN, weight->in - i);
        panel.steps = in_count / step_inputs;
        panel.is_added = i > 0;
        for (uint32_t b = 0; b < panel.blocks; b++) {
            panel.weight[b] = blocks + b * block_bytes + i * PACK_OUT * element_bytes;
        }
        for (uint32_t row = 0; row < tile->row_count; row += chunk_rows) {
            panel.rows = smaller(chunk_rows, tile->row_count - row);
            panel.sum = tile->sums[which] + (size_t)row * PRODUCT_OUTS;
            set_input(&panel, tile, weight->type, row, in, in_stride, i, in_count);
            cpu_panel(weight->type, &panel);
        }
    }
}
