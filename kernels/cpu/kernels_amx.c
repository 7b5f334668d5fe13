/* kernels_amx: the inner kernels for machines with AMX: tiles multiply bf16; the rest is AVX-512 with bf16 pairs.
 *
 * A packed block is a tile already: 16 steps of [16 lanes][2] are 16 rows of 64 bytes, and so are 16 rows of 32 inputs.
 * One tile product adds 16 steps (32 inputs) to 16 x 16 sums.
 *
 * Always true: a sum grows by whole tile products of 16 steps in ascending order, then by one of the steps that are
 * left; the rows beside it do not matter. The tile registers of a thread are shaped as its `shape_in_use` says.
 */
#define KERNELS_NAME cpu_kernels_amx
#define MICRO_ROWS   6 /* 24 of the 32 registers hold sums */
#define MICRO_BLOCKS 4
#define PANEL_BF16   panel_amx

#include "kernels/cpu/cpu.h"

static void panel_amx(const struct panel *panel);

#include "kernels/cpu/kernel_body.h"

enum { TILE_ROWS = 16, TILE_STEPS = 16, TILE_BYTES = 64, PAIR_BYTES = 4 };

/* Tiles 0-3 hold sums, 4 and 5 inputs, 6 and 7 weights. With rows 16 and no rest, 5 and 7 are as 4 and 6; else they
 * hold the steps that are left over. */
struct tile_shape {
    uint32_t rows, rest; /* rows of sums and inputs; steps of the last product, 0 .. 15 */
};

/* What the processor calls a tile configuration (palette 1). */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static _Thread_local struct tile_shape shape_in_use;

/* Reshaping takes as long as ten tile products, and clears the tiles: only when needed. (The empty assembler statements
 * of this file tell the compiler what its tile intrinsics do not: that they read memory.) */
static void use_shape(uint32_t rows, uint32_t rest)
{
    struct tile_config config = {.palette = 1};

    if (shape_in_use.rows == rows && shape_in_use.rest == rest) {
        return;
    }
    for (int sum = 0; sum < 4; sum++) {
        config.rows[sum] = (uint8_t)rows;
        config.row_bytes[sum] = TILE_BYTES;
    }
    config.rows[4] = config.rows[5] = (uint8_t)rows;
    config.row_bytes[4] = TILE_BYTES;
    config.row_bytes[5] = (uint16_t)(rest > 0 ? rest * PAIR_BYTES : TILE_BYTES);
    config.rows[6] = TILE_STEPS;
    config.rows[7] = (uint8_t)(rest > 0 ? rest : TILE_STEPS);
    config.row_bytes[6] = config.row_bytes[7] = TILE_BYTES;
    __asm__ volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
    shape_in_use = (struct tile_shape){rows, rest};
}

/* The instructions name their tiles by constants, hence macros. */
#define BEGIN_SUM(tile, sum, stride_bytes, is_added)                                                                   \
    do {                                                                                                               \
        if (is_added) {                                                                                                \
            _tile_loadd(tile, sum, stride_bytes);                                                                      \
        } else {                                                                                                       \
            _tile_zero(tile);                                                                                          \
        }                                                                                                              \
    } while (0)

/* Lines of the weights that this pair of blocks will be followed by, fetched a few at a time beside the products. */
struct fetch {
    const unsigned char *next[2];
    size_t offset, end; /* bytes */
};

LANES_INLINE void fetch_some(struct fetch *fetch)
{
    enum { LINES = 4, LINE_BYTES = 64 };

    if (fetch->offset < fetch->end) {
        UNROLLED
        for (size_t line = 0; line < LINES / 2; line++) {
            _mm_prefetch((const char *)fetch->next[0] + fetch->offset + line * LINE_BYTES, _MM_HINT_T1);
            _mm_prefetch((const char *)fetch->next[1] + fetch->offset + line * LINE_BYTES, _MM_HINT_T1);
        }
        fetch->offset += LINES / 2 * LINE_BYTES;
    }
}

/* 32 rows, two blocks, whole products only. */
static void product_2x2(const struct panel *panel, uint32_t row, uint32_t block, struct fetch *fetch)
{
    const unsigned char *in_0 = panel->in + row * panel->in_stride_bytes;
    const unsigned char *in_1 = in_0 + TILE_ROWS * panel->in_stride_bytes;
    const unsigned char *weight_0 = panel->weight[block], *weight_1 = panel->weight[block + 1];
    size_t in_stride = panel->in_stride_bytes, step_bytes = panel->step_bytes;
    size_t sum_stride = panel->sum_stride * sizeof(float);
    float *sum_0 = panel->sum + row * panel->sum_stride + (size_t)block * LANES;
    float *sum_1 = sum_0 + TILE_ROWS * panel->sum_stride;

    BEGIN_SUM(0, sum_0, sum_stride, panel->is_added);
    BEGIN_SUM(1, sum_0 + LANES, sum_stride, panel->is_added);
    BEGIN_SUM(2, sum_1, sum_stride, panel->is_added);
    BEGIN_SUM(3, sum_1 + LANES, sum_stride, panel->is_added);
    for (size_t s = 0; s < panel->steps; s += TILE_STEPS) {
        _tile_loadd(4, in_0 + s * PAIR_BYTES, in_stride);
        _tile_loadd(6, weight_0 + s * step_bytes, step_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, weight_1 + s * step_bytes, step_bytes);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, in_1 + s * PAIR_BYTES, in_stride);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        fetch_some(fetch);
    }
    _tile_stored(0, sum_0, sum_stride);
    _tile_stored(1, sum_0 + LANES, sum_stride);
    _tile_stored(2, sum_1, sum_stride);
    _tile_stored(3, sum_1 + LANES, sum_stride);
}

/* 64 rows, one block, whole products only: four sums at once, since one alone would wait for itself. */
static void product_4x1(const struct panel *panel, uint32_t row, uint32_t block)
{
    size_t in_stride = panel->in_stride_bytes, step_bytes = panel->step_bytes, in_tile = TILE_ROWS * in_stride;
    const unsigned char *in = panel->in + row * in_stride, *weight = panel->weight[block];
    size_t sum_stride = panel->sum_stride * sizeof(float), sum_tile = TILE_ROWS * panel->sum_stride;
    float *sum = panel->sum + row * panel->sum_stride + (size_t)block * LANES;

    BEGIN_SUM(0, sum, sum_stride, panel->is_added);
    BEGIN_SUM(1, sum + sum_tile, sum_stride, panel->is_added);
    BEGIN_SUM(2, sum + 2 * sum_tile, sum_stride, panel->is_added);
    BEGIN_SUM(3, sum + 3 * sum_tile, sum_stride, panel->is_added);
    for (size_t s = 0; s < panel->steps; s += TILE_STEPS) {
        _tile_loadd(6, weight + s * step_bytes, step_bytes);
        _tile_loadd(4, in + s * PAIR_BYTES, in_stride);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, in + in_tile + s * PAIR_BYTES, in_stride);
        _tile_dpbf16ps(1, 5, 6);
        _tile_loadd(4, in + 2 * in_tile + s * PAIR_BYTES, in_stride);
        _tile_dpbf16ps(2, 4, 6);
        _tile_loadd(5, in + 3 * in_tile + s * PAIR_BYTES, in_stride);
        _tile_dpbf16ps(3, 5, 6);
    }
    _tile_stored(0, sum, sum_stride);
    _tile_stored(1, sum + sum_tile, sum_stride);
    _tile_stored(2, sum + 2 * sum_tile, sum_stride);
    _tile_stored(3, sum + 3 * sum_tile, sum_stride);
}

/* Up to 16 rows, four blocks, in the shape (rows, steps % 16). */
static void product_1x4(const struct panel *panel, uint32_t row)
{
    const unsigned char *in = panel->in + row * panel->in_stride_bytes;
    const unsigned char *const *weight = panel->weight;
    size_t in_stride = panel->in_stride_bytes, step_bytes = panel->step_bytes;
    size_t sum_stride = panel->sum_stride * sizeof(float), whole = panel->steps / TILE_STEPS * TILE_STEPS, s = 0;
    float *sum = panel->sum + row * panel->sum_stride;

    BEGIN_SUM(0, sum, sum_stride, panel->is_added);
    BEGIN_SUM(1, sum + LANES, sum_stride, panel->is_added);
    BEGIN_SUM(2, sum + 2 * LANES, sum_stride, panel->is_added);
    BEGIN_SUM(3, sum + 3 * LANES, sum_stride, panel->is_added);
    for (; s < whole; s += TILE_STEPS) {
        _tile_loadd(4, in + s * PAIR_BYTES, in_stride);
        _tile_loadd(6, weight[0] + s * step_bytes, step_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(6, weight[1] + s * step_bytes, step_bytes);
        _tile_dpbf16ps(1, 4, 6);
        _tile_loadd(6, weight[2] + s * step_bytes, step_bytes);
        _tile_dpbf16ps(2, 4, 6);
        _tile_loadd(6, weight[3] + s * step_bytes, step_bytes);
        _tile_dpbf16ps(3, 4, 6);
    }
    if (s < panel->steps) {
        _tile_loadd(5, in + s * PAIR_BYTES, in_stride);
        _tile_loadd(7, weight[0] + s * step_bytes, step_bytes);
        _tile_dpbf16ps(0, 5, 7);
        _tile_loadd(7, weight[1] + s * step_bytes, step_bytes);
        _tile_dpbf16ps(1, 5, 7);
        _tile_loadd(7, weight[2] + s * step_bytes, step_bytes);
        _tile_dpbf16ps(2, 5, 7);
        _tile_loadd(7, weight[3] + s * step_bytes, step_bytes);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sum, sum_stride);
    _tile_stored(1, sum + LANES, sum_stride);
    _tile_stored(2, sum + 2 * LANES, sum_stride);
    _tile_stored(3, sum + 3 * LANES, sum_stride);
}

/* Up to 16 rows, one block at a time, in the shape (rows, steps % 16). */
static void product_1x1(const struct panel *panel, uint32_t row)
{
    const unsigned char *in = panel->in + row * panel->in_stride_bytes;
    size_t in_stride = panel->in_stride_bytes, step_bytes = panel->step_bytes;
    size_t sum_stride = panel->sum_stride * sizeof(float), whole = panel->steps / TILE_STEPS * TILE_STEPS;

    for (uint32_t block = 0; block < panel->blocks; block++) {
        float *sum = panel->sum + row * panel->sum_stride + (size_t)block * LANES;
        const unsigned char *weight = panel->weight[block];
        size_t s = 0;
        BEGIN_SUM(0, sum, sum_stride, panel->is_added);
        for (; s < whole; s += TILE_STEPS) {
            _tile_loadd(4, in + s * PAIR_BYTES, in_stride);
            _tile_loadd(6, weight + s * step_bytes, step_bytes);
            _tile_dpbf16ps(0, 4, 6);
        }
        if (s < panel->steps) {
            _tile_loadd(5, in + s * PAIR_BYTES, in_stride);
            _tile_loadd(7, weight + s * step_bytes, step_bytes);
            _tile_dpbf16ps(0, 5, 7);
        }
        _tile_stored(0, sum, sum_stride);
    }
}

/* Whole groups of rows, in pairs of blocks: a pair stays in the nearest cache. Returns the rows that are done. */
static uint32_t pairs_of_blocks(const struct panel *panel)
{
    uint32_t row_count = panel->rows / (2 * TILE_ROWS) * (2 * TILE_ROWS);

    for (uint32_t block = 0; block < panel->blocks && row_count > 0; block += 2) {
        struct fetch fetch = {
            .next = {panel->weight[block] + panel->ahead_bytes, panel->weight[block + 1] + panel->ahead_bytes},
            .end = panel->ahead_bytes > 0 ? panel->steps * panel->step_bytes : 0,
        };
        use_shape(TILE_ROWS, 0);
        for (uint32_t row = 0; row < row_count; row += 2 * TILE_ROWS) {
            product_2x2(panel, row, block, &fetch);
        }
    }
    return row_count;
}

static void panel_amx(const struct panel *panel)
{
    uint32_t row = 0, rest = panel->steps % TILE_STEPS;

    __asm__ volatile("" : : "r"(panel) : "memory");
    if (rest == 0 && panel->blocks % 2 == 0) {
        row = pairs_of_blocks(panel);
    } else if (rest == 0 && panel->blocks == 1) {
        for (; panel->rows - row >= 4 * TILE_ROWS; row += 4 * TILE_ROWS) {
            use_shape(TILE_ROWS, 0);
            product_4x1(panel, row, 0);
        }
    }
    for (; row < panel->rows; row += TILE_ROWS) {
        uint32_t left = panel->rows - row;
        use_shape(left < TILE_ROWS ? left : TILE_ROWS, rest);
        if (panel->blocks == PANEL_BLOCKS) {
            product_1x4(panel, row);
        } else {
            product_1x1(panel, row);
        }
    }
}
