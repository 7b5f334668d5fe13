/* product: a tile of a linear layer: its inputs in chains of PRODUCT_IN, panel after panel.
 *
 * Always true: an output is bias-free here, and is made of one chain for each PRODUCT_IN inputs, in ascending order;
 * neither the tile's rows nor its place enter into it.
 */
#include "kernels/cpu/product.h"

#include <assert.h>

size_t linear_workspace(const void *args, uint32_t worker_count)
{
    (void)args;
    return (size_t)worker_count * PRODUCT_WORKER_BYTES;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t tiles_of(uint32_t whole, uint32_t tile)
{
    return (whole + tile - 1) / tile;
}

struct product_cut product_cut_for(uint32_t rows, uint32_t outs, uint32_t matrices, uint32_t worker_count)
{
    enum { TILES_A_WORKER = 3, ROWS_LEAST = 64 };
    struct product_cut cut = {.rows = rows, .outs = outs, .tile_outs = PRODUCT_OUTS / matrices};

    /* Rows of equal tiles, in whole products of 32. */
    uint32_t row_tiles = tiles_of(rows, PRODUCT_ROWS);
    cut.tile_rows = tiles_of(tiles_of(rows, row_tiles), 32) * 32;
    while (worker_count > 1 && cut.tile_outs > PRODUCT_PANEL &&
           tiles_of(rows, cut.tile_rows) * tiles_of(outs, cut.tile_outs) < TILES_A_WORKER * worker_count) {
        cut.tile_outs /= 2;
    }
    while (worker_count > 1 && cut.tile_rows > ROWS_LEAST &&
           tiles_of(rows, cut.tile_rows) * tiles_of(outs, cut.tile_outs) < TILES_A_WORKER * worker_count) {
        cut.tile_rows = tiles_of(cut.tile_rows, 64) * 32;
    }
    cut.row_tiles = tiles_of(rows, cut.tile_rows);
    cut.tile_count = cut.row_tiles * tiles_of(outs, cut.tile_outs);
    return cut;
}

struct product_tile product_tile_at(const struct product_cut *cut, uint32_t tile_index, void *workspace,
                                    uint32_t worker_index)
{
    uint32_t row_first = tile_index % cut->row_tiles * cut->tile_rows;
    uint32_t out_first = tile_index / cut->row_tiles * cut->tile_outs;
    unsigned char *memory = (unsigned char *)workspace + (size_t)worker_index * PRODUCT_WORKER_BYTES;
    float *sums = (float *)(void *)memory;
    uint32_t sum_stride = cut->tile_outs + PRODUCT_PAD_BYTES / sizeof(float);

    assert(row_first < cut->rows && out_first < cut->outs);
    return (struct product_tile){
        .row_first = row_first,
        .row_count = smaller(cut->tile_rows, cut->rows - row_first),
        .out_first = out_first,
        .out_count = smaller(cut->tile_outs, cut->outs - out_first),
        .sums = {sums, sums + (size_t)PRODUCT_ROWS * sum_stride},
        .sum_stride = sum_stride,
        .dot = memory + PRODUCT_SUM_BYTES,
    };
}

/* A piece of a tile's work: some rows and one chain of inputs, in dot format. */
struct piece {
    uint32_t row, row_count; /* inside the tile */
    uint32_t in_first, in_count;
    size_t dot_stride_bytes;
};

static void bring_inputs(const struct product_tile *tile, const struct piece *piece, enum kernel_type type,
                         const void *in, uint32_t in_stride)
{
    size_t first = (size_t)(tile->row_first + piece->row) * in_stride + piece->in_first;

    for (uint32_t r = 0; r < piece->row_count; r++) {
        cpu_to_dot(tile->dot + r * piece->dot_stride_bytes, type, cpu_at(in, type, first + (size_t)r * in_stride), type,
                   piece->in_count);
    }
}

/* The piece times all of the tile's outputs of one matrix. */
static void multiply(const struct product_tile *tile, const struct piece *piece, const struct packed_matrix *matrix,
                     float *sums)
{
    uint32_t step_inputs = matrix->type == TYPE_BF16 ? 2 : 1;
    size_t input_bytes = PACK_OUT * kernel_type_bytes(matrix->type), block_bytes = matrix->in * input_bytes;
    const unsigned char *weight = (const unsigned char *)matrix->data + tile->out_first / PACK_OUT * block_bytes;
    struct panel panel = {
        .sum_stride = tile->sum_stride,
        .in = tile->dot,
        .in_stride_bytes = piece->dot_stride_bytes,
        .step_bytes = step_inputs * input_bytes,
        .ahead_bytes = 2 * block_bytes,
        .rows = piece->row_count,
        .steps = piece->in_count / step_inputs,
        .is_added = piece->in_first > 0,
    };

    for (uint32_t out = 0; out < tile->out_count; out += PRODUCT_PANEL) {
        panel.sum = sums + (size_t)piece->row * tile->sum_stride + out;
        panel.blocks = tiles_of(smaller(PRODUCT_PANEL, tile->out_count - out), PACK_OUT);
        for (uint32_t b = 0; b < panel.blocks; b++) {
            panel.weight[b] = weight + (out / PACK_OUT + b) * block_bytes + piece->in_first * input_bytes;
        }
        cpu_panel(matrix->type, &panel);
    }
}

void product_run(const struct product_tile *tile, const void *in, uint32_t in_stride,
                 const struct packed_matrix *const *matrices, uint32_t matrix_count)
{
    enum kernel_type type = matrices[0]->type;
    struct piece piece = {.dot_stride_bytes = PRODUCT_IN * cpu_dot_bytes(type) + PRODUCT_PAD_BYTES};
    uint32_t piece_rows = (uint32_t)(PRODUCT_DOT_BYTES / piece.dot_stride_bytes);

    for (uint32_t i = 0; i < matrices[0]->in; i += PRODUCT_IN) {
        piece.in_first = i;
        piece.in_count = smaller(PRODUCT_IN, matrices[0]->in - i);
        for (piece.row = 0; piece.row < tile->row_count; piece.row += piece_rows) {
            piece.row_count = smaller(piece_rows, tile->row_count - piece.row);
            bring_inputs(tile, &piece, type, in, in_stride);
            for (uint32_t m = 0; m < matrix_count; m++) {
                multiply(tile, &piece, matrices[m], tile->sums[m]);
            }
        }
    }
}
