/* kernels: the operands of every op, their layouts and shapes, and the formula in symbols.
 *
 * Maths on raw pointers: no op allocates, keeps state, or knows what a request is. Arrays are row-major and dense
 * unless a stride (in elements) is named; operands of one op do not overlap unless it says "in place".
 *
 * The law of every op: an output element is summed in an order that depends on its own row only. The same row gives the
 * same bits alone, in any batch, in any prefill chunk, with any number of workers. Between the variants of an op
 * (kernel_level in op.h) bits may differ.
 *
 * Rows may be 0: nothing is written. Every other dimension is at least 1.
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "act" below is the engine's activation type: bf16, or f32 with --dtype float32. The residual stream, biases, norm
 * weights, rotary tables and logits are f32 in both. */
enum kernel_type {
    TYPE_F32,
    TYPE_BF16,
    TYPE_F16, /* only as the source of packing and widening */
};

static inline size_t kernel_type_bytes(enum kernel_type type)
{
    return type == TYPE_F32 ? 4 : 2;
}

/* ---- weights ---- */

enum {
    PACK_OUT = 16, /* outputs a block: the lanes of a vector */
};

/* A linear layer's weight [out][in], packed so that a vector's lanes are neighbouring outputs:
 *   bf16: [out/16][in/2][16][2]   in is even
 *   f32:  [out/16][in][16]
 * out is rounded up to 16; that padding is zero. `data` is aligned to 64. */
struct packed_matrix {
    void *data;
    uint32_t out, in; /* of the layer, without padding */
    enum kernel_type type;
};

/* Bytes of `data`; a multiple of 64. */
uint64_t packed_matrix_bytes(uint32_t out, uint32_t in, enum kernel_type type);

/* Packs rows [row_first, row_first + row_count) from `source`, which is [row_count][in] of any type. Rows come in any
 * order and in any pieces; the padding is written with the last row.
 * (So q, k and v that lie in one stacked tensor are three calls with three places in it.) */
void packed_matrix_put(const struct packed_matrix *matrix, uint32_t row_first, uint32_t row_count, const void *source,
                       enum kernel_type source_type);

/* Element [row][column]: for tests and tools. */
float packed_matrix_get(const struct packed_matrix *matrix, uint32_t row, uint32_t column);

/* count elements of any type as f32: biases and norm weights at load. */
void kernel_widen(float *out, const void *source, enum kernel_type source_type, uint64_t count);

/* count f32 rounded to nearest even; NaN stays NaN. */
void kernel_narrow(uint16_t *out, const float *source, uint64_t count);

/* ---- rows and their place in sequences ---- */

/* Where a row's key and value go, and which keys it sees. Text: index = its place, keys [0, index + 1). Vision: index =
 * its patch, keys = its window, or the whole picture. */
struct kv_row {
    uint32_t sequence;           /* index into the op's `sequences` */
    uint32_t index;              /* kv_write: the slot of this row */
    uint32_t key_first, key_end; /* attention: sees keys key_first .. key_end-1; not empty */
};

struct kv_sequence {
    const uint32_t *pages; /* page numbers in order; NULL: page i is number i (a picture's own array) */
    uint32_t page_count;
};

/* Keys and values of one layer inside pages of KV_PAGE_TOKENS (16) tokens. D = head_dim, E = D rounded up to 16.
 *   bf16: K [kv_heads][D/2][16 tokens][2]   V [kv_heads][16/2][E][2 tokens]
 *   f32:  K [kv_heads][D][16 tokens]        V [kv_heads][16][E]
 * V follows K. D is even. Slots that were never written may hold anything; what a row does not see never reaches it,
 * unless an unseen but written value is infinite or NaN. */
struct kv_store {
    void *data;               /* this layer's part of page 0; aligned to 64 */
    size_t page_stride_bytes; /* from a page to the next (all layers, K and V); a multiple of 64 */
    uint32_t kv_heads, head_dim;
    enum kernel_type type;
};

/* Bytes of K alone, where V begins. */
size_t kv_store_k_bytes(uint32_t kv_heads, uint32_t head_dim, enum kernel_type type);

/* Bytes of one layer's K and V in a page; a multiple of 64. */
size_t kv_store_layer_bytes(uint32_t kv_heads, uint32_t head_dim, enum kernel_type type);

/* ---- ops ---- */

/* out[r] = feature[r] if it is given, else row ids[r] of the table. The table is the packed head: a tied model holds it
 * once. */
struct embed_args {
    float *out;                  /* [rows][table->in] */
    const int32_t *ids;          /* [rows], 0 <= id < table->out; not read where a feature is given */
    const void *const *features; /* [rows] of pointers to [table->in] of table->type, or NULL; or NULL: none at all */
    const struct packed_matrix *table;
    uint32_t rows;
};

/* out[r][i] = weight[i] * in[r][i] / sqrt(mean_i(in[r][i]^2) + eps), rounded once, at the end. */
struct rmsnorm_args {
    void *out;           /* [rows][width] of out_type */
    const float *in;     /* [rows][width]; may be out, if that is f32 */
    const float *weight; /* [width] */
    uint32_t rows, width;
    float eps;
    enum kernel_type out_type;
};

/* OP_LINEAR:     out[r][o]  = bias[o] + sum_i weight[o][i] * in[r][i]
 * OP_LINEAR_ADD: out[r][o] += the same; out_type is f32 (the residual stream) */
struct linear_args {
    void *out;      /* [rows][out_stride], out_type */
    const void *in; /* [rows][in_stride], act = weight->type */
    const struct packed_matrix *weight;
    const float *bias; /* [weight->out], or NULL */
    uint32_t rows;
    uint32_t in_stride, out_stride; /* elements; at least weight->in, weight->out */
    enum kernel_type out_type;      /* f32, or act */
};

/* The gated half of an MLP in one pass: out = silu(g) * u, g = gate * in + gate_bias, u = up * in + up_bias;
 * silu(g) = g / (1 + exp(-g)). g and u stay f32 and never leave the tile. */
struct linear_swiglu_args {
    void *out;                             /* [rows][out_stride], act */
    const void *in;                        /* [rows][in_stride], act = gate->type */
    const struct packed_matrix *gate, *up; /* same shape and type */
    const float *gate_bias, *up_bias;      /* [gate->out], or NULL */
    uint32_t rows;
    uint32_t in_stride, out_stride; /* elements */
};

/* out = in/2 * (1 + erf(in / sqrt(2))). */
struct gelu_erf_args {
    void *out;       /* [rows][width] of out_type */
    const float *in; /* [rows][width] */
    uint32_t rows, width;
    enum kernel_type out_type;
};

/* Copies with another type or stride. */
struct convert_args {
    void *out;      /* [rows][out_stride] of out_type */
    const void *in; /* [rows][in_stride] of in_type */
    uint32_t rows, width;
    uint32_t in_stride, out_stride;     /* elements */
    enum kernel_type in_type, out_type; /* f32 or bf16 */
};

/* angle[r][j] = (float)positions[r][axis[j]] * frequency[j], a float product; cos and sin of it. Text: axis from
 * mrope_section. Vision: positions (0, y, x); axis 1 for j < half/2, then 2, frequencies repeated. */
struct rotary_table_args {
    float *cos, *sin;              /* [rows][half] */
    const int32_t (*positions)[3]; /* [rows] t, h, w */
    const uint8_t *axis;           /* [half], 0..2 */
    const float *frequency;        /* [half] */
    uint32_t rows, half;           /* half = head_dim / 2 */
};

/* In place, for each row and head, i < half: (a, b) = (data[i], data[i + half]) becomes
 * (a*cos[i] - b*sin[i], b*cos[i] + a*sin[i]). Vision's fused q|k|v: heads = 2 * heads, row_stride = 3C. */
struct rotary_args {
    float *data;            /* [rows][row_stride]; the first heads * 2 * half of a row are rotated */
    const float *cos, *sin; /* [rows][half] */
    uint32_t rows, heads, half;
    uint32_t row_stride; /* elements */
};

/* Writes each row's key and value into its slot, rounded to store->type. */
struct kv_write_args {
    const struct kv_store *store;
    const float *k, *v;          /* [rows][kv_heads * D] with strides */
    const struct kv_row *places; /* [rows]; distinct slots */
    const struct kv_sequence *sequences;
    uint32_t rows;
    uint32_t k_stride, v_stride; /* elements */
};

/* out[r][h] = sum_t softmax_t(scale * q[r][h] . K[t][h / group]) V[t][h / group] over the keys t that row r sees;
 * group = heads / kv_heads. Online softmax in f32, key blocks by absolute position. Rows of one sequence that are
 * neighbours share the reading of its keys. */
struct attention_args {
    void *out;     /* [rows][heads * D], act = store->type */
    const void *q; /* [rows][q_stride] of q_type; rotated */
    const struct kv_store *store;
    const struct kv_row *places; /* [rows] */
    const struct kv_sequence *sequences;
    uint32_t rows, heads;
    uint32_t q_stride;       /* elements */
    enum kernel_type q_type; /* f32 (rounded to act on the way in), or act */
    float scale;             /* 1 / sqrt(D) */
};

/* Patch rows [row_first, row_first + rows) of a resized picture, in the order of the tower. Row n belongs to group
 * n / merge^2; group i is group order[i] of the raster. Column ((c*frames + f)*patch + y)*patch + x is
 * normalize[c][value of channel c at pixel (y, x) of the patch]. Spec §2. */
struct patchify_args {
    void *out;                     /* [rows][3 * frames * patch^2], act = out_type */
    const uint8_t *rgb;            /* [grid_h * patch][grid_w * patch][3] */
    const float (*normalize)[256]; /* [3] */
    const uint32_t *order;         /* [grid_h * grid_w / merge^2], or NULL: raster */
    uint32_t grid_h, grid_w;       /* patches; multiples of merge */
    uint32_t patch, merge, frames; /* 14, 2, 2 */
    uint32_t row_first, rows;
    enum kernel_type out_type;
};

/* Undoes the window order: row r of `in` goes to row order[r] of the feature pages. */
struct scatter_rows_args {
    void *const *pages;    /* page p holds rows p*MM_PAGE_TOKENS .. of [width], type */
    const void *in;        /* [rows][width] of type */
    const uint32_t *order; /* [rows]: the caller's order + the number of the first row */
    uint32_t rows, width;
    enum kernel_type type; /* f32 or bf16 */
};

#endif
