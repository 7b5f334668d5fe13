/* product: the tiles that linear layers are cut into, shared by linear, linear_add and linear_swiglu. */
#ifndef KERNELS_CPU_PRODUCT_H
#define KERNELS_CPU_PRODUCT_H

#include "kernels/cpu/cpu.h"

enum {
    PRODUCT_ROWS = 256,                      /* rows a tile, at most */
    PRODUCT_OUTS = 512,                      /* outputs a tile, at most; all its matrices together */
    PRODUCT_PANEL = PANEL_BLOCKS * PACK_OUT, /* outputs a panel, and the least of a tile */
    PRODUCT_IN = 256,                        /* inputs a chain of sums: part of the law, never chosen by shape */
    PRODUCT_PAD_BYTES = 64,                  /* behind each row, or all would fall into the same sets of the cache */
    PRODUCT_SUM_BYTES = PRODUCT_ROWS * (PRODUCT_OUTS * 4 + 2 * PRODUCT_PAD_BYTES), /* of one matrix, or of two halves */
    PRODUCT_DOT_BYTES = PRODUCT_ROWS * (PRODUCT_IN * 2 + PRODUCT_PAD_BYTES),
    PRODUCT_WORKER_BYTES = PRODUCT_SUM_BYTES + PRODUCT_DOT_BYTES,
};

/* How rows x outs are cut. Results do not depend on it. */
struct product_cut {
    uint32_t rows, outs;           /* of the whole */
    uint32_t tile_rows, tile_outs; /* tile_outs is a multiple of PRODUCT_PANEL */
    uint32_t row_tiles, tile_count;
};

/* A tile, and the memory of the worker that has it. */
struct product_tile {
    uint32_t row_first, row_count;
    uint32_t out_first, out_count;
    float *sums[2];      /* [row_count][tile_outs] each: one of each matrix */
    uint32_t sum_stride; /* tile_outs and padding */
    unsigned char *dot;  /* PRODUCT_DOT_BYTES */
};

/* Large tiles for speed, yet enough of them for every worker. `matrices` (1 or 2) share the inputs and a tile. */
struct product_cut product_cut_for(uint32_t rows, uint32_t outs, uint32_t matrices, uint32_t worker_count);

/* Neighbouring tiles share their weights. */
struct product_tile product_tile_at(const struct product_cut *cut, uint32_t tile_index, void *workspace,
                                    uint32_t worker_index);

/* sums[m] = the tile's rows of `in` times matrices[m]. */
void product_run(const struct product_tile *tile, const void *in, uint32_t in_stride,
                 const struct packed_matrix *const *matrices, uint32_t matrix_count);

#endif
