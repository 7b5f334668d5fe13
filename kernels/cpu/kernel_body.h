/* kernel_body: the inner kernels, written once over lanes.h; a level's file defines the tile sizes, includes this, and
 * exports KERNELS_NAME.
 *
 *   MICRO_ROWS    rows of a register tile,
 *   MICRO_BLOCKS  and its blocks: PANEL_BLOCKS or 1
 *   PANEL_BF16    the level's own product of bf16 pairs, if it has one
 *
 * Always true: a sum is one chain from 0, in ascending order, whatever the tile that a row falls into.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/lanes.h"

#if defined(__AVX512BF16__)
#define HAS_PAIR_PRODUCTS true
#else
#define HAS_PAIR_PRODUCTS false
#endif

/* ---- products ---- */

/* Rows row .. row + row_count, blocks block .. block + block_count; the counts and is_pair are constants. */
LANES_INLINE void micro_tile(const struct panel *panel, uint32_t row, uint32_t block, const bool is_pair,
                             const uint32_t row_count, const uint32_t block_count)
{
    const size_t dot_bytes = is_pair ? (HAS_PAIR_PRODUCTS ? 4 : 8) : 4;
    const unsigned char *in = panel->in + row * panel->in_stride_bytes;
    lanes acc[MICRO_ROWS][PANEL_BLOCKS];

    UNROLLED
    for (uint32_t r = 0; r < row_count; r++) {
        UNROLLED
        for (uint32_t b = 0; b < block_count; b++) {
            acc[r][b] = lanes_all(0);
        }
    }
    for (uint32_t s = 0; s < panel->steps; s++) {
        UNROLLED
        for (uint32_t r = 0; r < row_count; r++) {
            const unsigned char *element = in + r * panel->in_stride_bytes + s * dot_bytes;
            UNROLLED
            for (uint32_t b = 0; b < block_count; b++) {
                const unsigned char *step = panel->weight[block + b] + s * panel->step_bytes;
                if (is_pair) {
                    acc[r][b] = lanes_dot_pair(acc[r][b], step, element);
                } else {
                    acc[r][b] = lanes_fma(lanes_load((const float *)(const void *)step),
                                          lanes_all(*(const float *)(const void *)element), acc[r][b]);
                }
            }
        }
    }
    UNROLLED
    for (uint32_t r = 0; r < row_count; r++) {
        UNROLLED
        for (uint32_t b = 0; b < block_count; b++) {
            float *sum = panel->sum + (row + r) * panel->sum_stride + (size_t)(block + b) * LANES;
            lanes_store(sum, panel->is_added ? lanes_add(lanes_load(sum), acc[r][b]) : acc[r][b]);
        }
    }
}

/* All rows of some blocks: full tiles, then what is left in halves. */
LANES_INLINE void micro_rows(const struct panel *panel, uint32_t block, const bool is_pair, const uint32_t block_count)
{
    uint32_t row = 0;

    for (; panel->rows - row >= MICRO_ROWS; row += MICRO_ROWS) {
        micro_tile(panel, row, block, is_pair, MICRO_ROWS, block_count);
    }
    if (MICRO_ROWS > 4 && panel->rows - row >= 4) {
        micro_tile(panel, row, block, is_pair, 4, block_count);
        row += 4;
    }
    if (MICRO_ROWS > 2 && panel->rows - row >= 2) {
        micro_tile(panel, row, block, is_pair, 2, block_count);
        row += 2;
    }
    if (panel->rows > row) {
        micro_tile(panel, row, block, is_pair, 1, block_count);
    }
}

LANES_INLINE void panel_product(const struct panel *panel, const bool is_pair)
{
    bool is_wide = panel->blocks == PANEL_BLOCKS && (MICRO_BLOCKS == PANEL_BLOCKS || panel->rows == 1);

    if (is_wide && MICRO_BLOCKS == PANEL_BLOCKS) {
        micro_rows(panel, 0, is_pair, PANEL_BLOCKS);
    } else if (is_wide) { /* one row: more blocks at once hide the latency of the sums */
        micro_tile(panel, 0, 0, is_pair, 1, PANEL_BLOCKS);
    } else {
        for (uint32_t block = 0; block < panel->blocks; block++) {
            micro_rows(panel, block, is_pair, 1);
        }
    }
}

static void panel_f32(const struct panel *panel)
{
    panel_product(panel, false);
}

#if !defined(PANEL_BF16)
#define PANEL_BF16 panel_bf16
static void panel_bf16(const struct panel *panel)
{
    panel_product(panel, true);
}
#endif

/* ---- rows ---- */

LANES_INLINE void put_lanes(void *out, enum kernel_type type, uint32_t i, lanes value, uint32_t count)
{
    if (type == TYPE_F32 && count >= LANES) {
        lanes_store((float *)out + i, value);
    } else if (type == TYPE_F32) {
        lanes_store_some((float *)out + i, value, count);
    } else if (count >= LANES) {
        lanes_store_bf16((uint16_t *)out + i, value);
    } else {
        lanes_store_bf16_some((uint16_t *)out + i, value, count);
    }
}

LANES_INLINE lanes get_lanes(const float *in, uint32_t i, uint32_t count)
{
    return count >= LANES ? lanes_load(in + i) : lanes_load_some(in + i, count);
}

static void narrow(uint16_t *out, const float *in, uint32_t width)
{
    for (uint32_t i = 0; i < width; i += LANES) {
        put_lanes(out, TYPE_BF16, i, get_lanes(in, i, width - i), width - i);
    }
}

static void widen(float *out, const uint16_t *in, uint32_t width)
{
    for (uint32_t i = 0; i < width; i += LANES) {
        uint32_t count = width - i;
        put_lanes(out, TYPE_F32, i, count >= LANES ? lanes_load_bf16(in + i) : lanes_load_bf16_some(in + i, count),
                  count);
    }
}

/* sum + bias; sum has whole lanes behind its end. */
LANES_INLINE lanes with_bias(const float *sum, const float *bias, uint32_t i, uint32_t count)
{
    lanes value = lanes_load(sum + i);

    return bias != NULL ? lanes_add(value, get_lanes(bias, i, count)) : value;
}

static void finish(void *out, enum finish kind, const float *sum, const float *bias, uint32_t width)
{
    for (uint32_t i = 0; i < width; i += LANES) {
        lanes value = with_bias(sum, bias, i, width - i);
        if (kind == FINISH_ADD) {
            value = lanes_add(get_lanes(out, i, width - i), value);
        }
        put_lanes(out, kind == FINISH_BF16 ? TYPE_BF16 : TYPE_F32, i, value, width - i);
    }
}

static void finish_swiglu(void *out, enum kernel_type type, const float *gate, const float *up, const float *gate_bias,
                          const float *up_bias, uint32_t width)
{
    const lanes one = lanes_all(1);

    for (uint32_t i = 0; i < width; i += LANES) {
        lanes g = with_bias(gate, gate_bias, i, width - i), u = with_bias(up, up_bias, i, width - i);
        lanes silu = lanes_div(g, lanes_add(one, lanes_exp(lanes_sub(lanes_all(0), g))));
        put_lanes(out, type, i, lanes_mul(silu, u), width - i);
    }
}

static void rmsnorm(void *out, enum kernel_type type, const float *in, const float *weight, uint32_t width, float eps)
{
    lanes squares[4] = {lanes_all(0), lanes_all(0), lanes_all(0), lanes_all(0)};
    uint32_t i = 0;

    for (; width - i >= 4 * LANES; i += 4 * LANES) {
        UNROLLED
        for (uint32_t k = 0; k < 4; k++) {
            lanes x = lanes_load(in + i + k * LANES);
            squares[k] = lanes_fma(x, x, squares[k]);
        }
    }
    for (; i < width; i += LANES) {
        lanes x = get_lanes(in, i, width - i);
        squares[0] = lanes_fma(x, x, squares[0]);
    }
    float sum = lanes_sum(lanes_add(lanes_add(squares[0], squares[1]), lanes_add(squares[2], squares[3])));
    lanes factor = lanes_all(1 / sqrtf(sum / (float)width + eps));
    for (i = 0; i < width; i += LANES) {
        lanes scaled = lanes_mul(get_lanes(in, i, width - i), factor);
        put_lanes(out, type, i, lanes_mul(get_lanes(weight, i, width - i), scaled), width - i);
    }
}

/* erfc(z) for z >= 0: t e^(p(t) - z^2) with t = 1 / (1 + z/2), to some 2e-7 of the result. p is the polynomial of least
 * greatest distance from ln(erfc(z) / t) + z^2 for z up to 10; beyond, the result is 0. */
LANES_INLINE lanes erfc_of_positive(lanes z)
{
    static const float coefficients[] = {0.142198876f,   -0.6660882284f, 1.12245988f,   -0.6513263019f, -0.1167238502f,
                                         0.02016268787f, 0.02836819019f, 0.3878974719f, 0.9984927701f,  -1.26544145f};
    lanes t = lanes_div(lanes_all(1), lanes_fma(z, lanes_all(0.5f), lanes_all(1)));
    lanes p = lanes_all(coefficients[0]);

    UNROLLED
    for (uint32_t k = 1; k < 10; k++) {
        p = lanes_fma(p, t, lanes_all(coefficients[k]));
    }
    return lanes_mul(t, lanes_exp(lanes_sub(p, lanes_mul(z, z))));
}

static void gelu_erf(void *out, enum kernel_type type, const float *in, uint32_t width)
{
    const lanes zero = lanes_all(0);

    for (uint32_t i = 0; i < width; i += LANES) {
        lanes x = get_lanes(in, i, width - i);
        lanes magnitude = lanes_max(x, lanes_sub(zero, x));
        lanes tail = lanes_mul(lanes_mul(magnitude, lanes_all(0.5f)),
                               erfc_of_positive(lanes_mul(magnitude, lanes_all(0.70710678f))));
        put_lanes(out, type, i, lanes_sub(lanes_max(x, zero), tail), width - i); /* x - tail, or -tail */
    }
}

static void rotary(float *data, const float *cos, const float *sin, uint32_t half)
{
    for (uint32_t i = 0; i < half; i += LANES) {
        uint32_t count = half - i;
        lanes a = get_lanes(data, i, count), b = get_lanes(data + half, i, count);
        lanes c = get_lanes(cos, i, count), s = get_lanes(sin, i, count);
        put_lanes(data, TYPE_F32, i, lanes_sub(lanes_mul(a, c), lanes_mul(b, s)), count);
        put_lanes(data + half, TYPE_F32, i, lanes_add(lanes_mul(b, c), lanes_mul(a, s)), count);
    }
}

/* ---- attention ---- */

/* Scores become powers of 2: their maximum is kept in units of log 2. */
LANES_INLINE void softmax(const struct softmax_line *line, const bool is_bf16)
{
    const lanes scale = lanes_all(line->scale * 1.44269504f);
    lanes max = lanes_all(-INFINITY), total = lanes_load(line->total);

    for (uint32_t b = 0; b < line->key_blocks; b++) {
        max = lanes_max(lanes_load(line->scores + b * LANES), max);
    }
    float block_max = lanes_max_lane(lanes_mul(max, scale));
    if (block_max > *line->max) {
        lanes shrink = lanes_exp2(lanes_all(*line->max - block_max), false);
        total = lanes_mul(total, shrink);
        for (uint32_t b = 0; b < line->out_blocks; b++) {
            lanes_store(line->out + b * LANES, lanes_mul(lanes_load(line->out + b * LANES), shrink));
        }
        *line->max = block_max;
    }
    max = lanes_all(*line->max);
    for (uint32_t b = 0; b < line->key_blocks; b++) {
        lanes below = lanes_sub(lanes_mul(lanes_load(line->scores + b * LANES), scale), max);
        lanes weight = lanes_exp2(below, is_bf16);
        if (is_bf16 && HAS_PAIR_PRODUCTS) {
            lanes_store_weights((uint16_t *)line->weights + b * LANES, weight);
        } else {
            lanes_store((float *)line->weights + b * LANES, weight);
        }
        total = lanes_add(total, weight);
    }
    lanes_store(line->total, total);
}

static void softmax_f32(const struct softmax_line *line)
{
    softmax(line, false);
}

static void softmax_bf16(const struct softmax_line *line)
{
    softmax(line, true);
}

static void attention_out(void *out, enum kernel_type type, const float *sum, const float *total, uint32_t width)
{
    lanes divisor = lanes_all(lanes_sum(lanes_load(total)));

    for (uint32_t i = 0; i < width; i += LANES) {
        put_lanes(out, type, i, lanes_div(lanes_load(sum + i), divisor), width - i);
    }
}

const struct cpu_kernels KERNELS_NAME = {
    .has_pair_products = HAS_PAIR_PRODUCTS,
    .panel_f32 = panel_f32,
    .panel_bf16 = PANEL_BF16,
    .narrow = narrow,
    .widen = widen,
    .finish = finish,
    .finish_swiglu = finish_swiglu,
    .rmsnorm = rmsnorm,
    .gelu_erf = gelu_erf,
    .rotary = rotary,
    .softmax_f32 = softmax_f32,
    .softmax_bf16 = softmax_bf16,
    .attention_out = attention_out,
};
