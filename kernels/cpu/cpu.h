/* cpu: the inner kernels that each level brings, and how the ops cut their work into tiles.
 *
 * An op's file (cpu/<op>.c) is plain C: it walks tiles, rows and blocks, and calls the inner kernels of the level in
 * use. The inner kernels are written once (kernel_body.h) and compiled for each level (kernels_<level>.c).
 */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include "kernels/implementations.h"

enum {
    PANEL_BLOCKS = 4,    /* blocks of 16 outputs a panel: 64 outputs */
    ATTENTION_PAGES = 8, /* KV pages a softmax block; a page is a block of a panel */
    ATTENTION_KEYS = ATTENTION_PAGES * KV_PAGE_TOKENS,
};

/* sum[r][b * 16 + lane] (+)= the dot products of row r with the outputs of block b.
 *
 * The summed dimension comes in steps: a pair of bf16, or one f32. Block b's step s is the 64 bytes at weight[b] +
 * s * step_bytes, [16 lanes][2] or [16 lanes]. The steps form one chain of sums; it is stored, or goes on from (or is
 * added to) what is there, as the level likes, but always in the same way. */
struct panel {
    float *sum; /* [rows][sum_stride] */
    size_t sum_stride;
    const unsigned char *in; /* [rows], in_stride_bytes apart; in dot format */
    size_t in_stride_bytes;
    const unsigned char *weight[PANEL_BLOCKS];
    size_t step_bytes;
    size_t ahead_bytes; /* from block b to block b + 2, also behind the last: worth fetching early; 0: not known */
    uint32_t rows, blocks, steps; /* blocks <= PANEL_BLOCKS */
    bool is_added;
};

/* A line of the online softmax: one row and head. */
struct softmax_line {
    float *scores;                   /* [ATTENTION_KEYS]; -infinity where not seen */
    void *weights;                   /* [ATTENTION_KEYS] out, in dot format */
    float *max;                      /* running maximum of the scaled scores, in units of log 2 */
    float *total;                    /* [16] running sums of the weights, by lane */
    float *out;                      /* [lanes_count * 16] running output; rescaled when the maximum rises */
    uint32_t key_blocks, out_blocks; /* blocks of 16 */
    float scale;
};

/* How the product's epilogue leaves a row. */
enum finish { FINISH_F32, FINISH_BF16, FINISH_ADD };

struct cpu_kernels {
    /* Dot format: what a panel's `in` looks like. f32: floats. bf16: bf16 where the machine multiplies pairs, else
     * floats. */
    bool has_pair_products;
    void (*panel_f32)(const struct panel *panel);
    void (*panel_bf16)(const struct panel *panel);

    /* Rows of any width. */
    void (*narrow)(uint16_t *out, const float *in, uint32_t width);
    void (*widen)(float *out, const uint16_t *in, uint32_t width);
    void (*finish)(void *out, enum finish finish, const float *sum, const float *bias, uint32_t width);
    void (*finish_swiglu)(void *out, enum kernel_type type, const float *gate, const float *up, const float *gate_bias,
                          const float *up_bias, uint32_t width);
    void (*rmsnorm)(void *out, enum kernel_type type, const float *in, const float *weight, uint32_t width, float eps);
    void (*gelu_erf)(void *out, enum kernel_type type, const float *in, uint32_t width);
    void (*rotary)(float *data, const float *cos, const float *sin, uint32_t half);
    void (*softmax_f32)(const struct softmax_line *line);
    void (*softmax_bf16)(const struct softmax_line *line);
    void (*attention_out)(void *out, enum kernel_type type, const float *sum, const float *total, uint32_t width);
};

/* The level in use; set by kernels_choose and kernels_use. */
extern const struct cpu_kernels *cpu_kernels;

/* NULL where this machine cannot run the level, or the compiler could not build it. */
const struct cpu_kernels *cpu_kernels_for(enum kernel_level level);

/* Whether the level is faster here than those below it, where the machine can run it. */
bool cpu_kernels_are_worth(enum kernel_level level);

extern const struct cpu_kernels cpu_kernels_generic, cpu_kernels_avx2, cpu_kernels_avx512, cpu_kernels_avx512bf16,
    cpu_kernels_amx;

/* Bytes of an element in dot format. */
static inline size_t cpu_dot_bytes(enum kernel_type type)
{
    return type == TYPE_BF16 && cpu_kernels->has_pair_products ? 2 : 4;
}

static inline void cpu_panel(enum kernel_type type, const struct panel *panel)
{
    if (type == TYPE_F32) {
        cpu_kernels->panel_f32(panel);
    } else {
        cpu_kernels->panel_bf16(panel);
    }
}

/* Elements first, first + 1, .. of a row of any type, as an address. */
static inline const void *cpu_at(const void *data, enum kernel_type type, size_t first)
{
    return (const unsigned char *)data + first * kernel_type_bytes(type);
}

static inline void *cpu_at_out(void *data, enum kernel_type type, size_t first)
{
    return (unsigned char *)data + first * kernel_type_bytes(type);
}

/* Writes width elements of `in`, rounded to `type`, in dot format for products with `type`. f32 for bf16: at most
 * HEAD_DIM_MAX. */
void cpu_to_dot(void *out, enum kernel_type type, const void *in, enum kernel_type in_type, uint32_t width);

/* Calls rows(args, first, end) so that all of 0 .. row_count-1 are covered, in pieces that are worth a thread's while;
 * on the calling thread alone if all of it is not. `row_work` is about the elements that a row touches. */
typedef void cpu_rows_function(const void *args, uint32_t first, uint32_t end);
void cpu_rows(struct team *team, cpu_rows_function *rows, const void *args, uint32_t row_count, uint64_t row_work);

/* Runs all tiles on the team, or on the calling thread alone where `work` (multiply-adds) is not worth waking anybody.
 */
void cpu_tiles(struct team *team, team_tile *tile, void *ctx, uint32_t tile_count, uint64_t work);

#endif
