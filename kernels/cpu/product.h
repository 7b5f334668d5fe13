/* product: the tiles that linear layers are cut into, shared by linear, linear_add and linear_swiglu. */
#ifndef KERNELS_CPU_PRODUCT_H
#define KERNELS_CPU_PRODUCT_H

#include "kernels/cpu/cpu.h"

enum {
    PRODUCT_ROWS = 96,                            /* rows a tile, at most: whole micro tiles of every level */
    PRODUCT_OUTS = PANEL_BLOCKS * PACK_OUT,       /* outputs a tile */
    PRODUCT_IN = 512,                             /* inputs a chain of sums: part of the law, equal at all levels */
    PRODUCT_DOT_ROWS = 24,                        /* rows that are brought into dot format at once */
    PRODUCT_SUM_BYTES = PRODUCT_ROWS * PRODUCT_OUTS * 4,
    PRODUCT_DOT_BYTES = PRODUCT_DOT_ROWS * PRODUCT_IN * 4,
    PRODUCT_WORKER_BYTES = 2 * PRODUCT_SUM_BYTES + PRODUCT_DOT_BYTES, /* two sums: gate and up */
};

/* A tile of a product, and the memory of the worker that has it. */
struct product_tile {
    uint32_t row_first, row_count; /* at most PRODUCT_ROWS */
    uint32_t out_first, out_count; /* at most PRODUCT_OUTS; out_first is a multiple of it */
    float *sums[2];                /* [row_count][PRODUCT_OUTS] each */
    unsigned char *dot;            /* PRODUCT_DOT_BYTES */
};

/* Where the tiles of rows x outs lie; tile_count = product_tiles(). Neighbouring tiles share their weights. */
uint32_t product_tiles(uint32_t rows, uint32_t outs);
struct product_tile product_tile_at(uint32_t rows, uint32_t outs, uint32_t tile_index, void *workspace,
                                    uint32_t worker_index);

/* sums[which] = the tile's rows of `in` times `weight`. */
void product_run(const struct product_tile *tile, uint32_t which, const void *in, uint32_t in_stride,
                 const struct packed_matrix *weight);

#endif
