/* kerncheck_ops: what each op's operands are, and how to name some of its rows. Nothing here checks anything. */
#include "tests/kernels/kerncheck.h"

#include "kernels/bf16.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct packed_matrix *make_matrix(struct trial *trial, int which, const char *name, uint32_t out, uint32_t in)
{
    struct packed_matrix *matrix = &trial->matrices[which];

    *matrix = (struct packed_matrix){.out = out, .in = in, .type = trial->act};
    size_t count = packed_matrix_bytes(out, in, trial->act) / kernel_type_bytes(trial->act);
    matrix->data = trial_operand(trial, name, OPERAND_IN, kind_of(trial->act), count);
    return matrix;
}

static float *make_f32(struct trial *trial, const char *name, enum operand_role role, size_t count)
{
    return trial_operand(trial, name, role, OPERAND_F32, count);
}

static void note_shape(struct trial *trial, const char *names, uint32_t a, uint32_t b, uint32_t c)
{
    snprintf(trial->shape, sizeof trial->shape, "%s rows %u, %s %u %u %u%s", trial->act == TYPE_BF16 ? "bf16" : "f32",
             trial->rows, names, a, b, c, trial->is_corner ? ", extreme values" : "");
}

static const unsigned char *offset(const void *data, enum kernel_type type, size_t elements)
{
    return (const unsigned char *)data + elements * kernel_type_bytes(type);
}

/* ---- embed ---- */

static void make_embed(struct trial *trial, const struct trial_size *size)
{
    struct embed_args *args = &trial->args.embed;
    uint32_t vocab = 1 + size->other % 100, width = size->width;
    int32_t *ids = trial_operand(trial, "ids", OPERAND_IN, OPERAND_BYTES, trial->rows * sizeof *ids);
    unsigned char *features =
        trial_operand(trial, "features", OPERAND_IN, kind_of(trial->act), (size_t)trial->rows * width);

    note_shape(trial, "vocab, width", vocab, width, 0);
    for (uint32_t r = 0; r < trial->rows; r++) {
        ids[r] = (int32_t)trial_random(trial, vocab);
        trial->pointers[r] = r % 3 == 1 ? offset(features, trial->act, (size_t)r * width) : NULL;
    }
    *args = (struct embed_args){
        .out = make_f32(trial, "out", OPERAND_OUT, (size_t)trial->rows * width),
        .ids = ids,
        .features = size->other % 4 == 0 ? NULL : trial->pointers,
        .table = make_matrix(trial, 0, "table", vocab, width),
        .rows = trial->rows,
    };
}

static void take_embed(union op_args *args, uint32_t first)
{
    struct embed_args *embed = &args->embed;

    embed->out += (size_t)first * embed->table->in;
    embed->ids += first;
    embed->features = embed->features != NULL ? embed->features + first : NULL;
}

/* ---- rmsnorm ---- */

static void make_rmsnorm(struct trial *trial, const struct trial_size *size)
{
    size_t count = (size_t)trial->rows * size->width;

    note_shape(trial, "width", size->width, 0, 0);
    trial->args.rmsnorm = (struct rmsnorm_args){
        .out = trial_operand(trial, "out", OPERAND_OUT, kind_of(trial->act), count),
        .in = make_f32(trial, "in", OPERAND_IN, count),
        .weight = make_f32(trial, "weight", OPERAND_IN, size->width),
        .rows = trial->rows,
        .width = size->width,
        .eps = 1e-6f,
        .out_type = trial->act,
    };
}

static void take_rmsnorm(union op_args *args, uint32_t first)
{
    struct rmsnorm_args *norm = &args->rmsnorm;
    size_t count = (size_t)first * norm->width;

    norm->out = (unsigned char *)norm->out + count * kernel_type_bytes(norm->out_type);
    norm->in += count;
}

/* ---- linear, linear_add, linear_swiglu ---- */

static uint32_t outputs_of(const struct trial_size *size)
{
    static const uint32_t outs[] = {1, 15, 16, 17, 63, 64, 65, 48, 130, 200, 530, 1040};

    return outs[size->other % 12];
}

static void make_linear(struct trial *trial, const struct trial_size *size)
{
    struct linear_args *args = &trial->args.linear;
    uint32_t out = outputs_of(size), in = size->width;
    uint32_t in_stride = in + (size->other / 10 % 2) * 6, out_stride = out + size->other / 20 % 2 * 5;
    bool is_add = trial->op == OP_LINEAR_ADD;
    enum kernel_type out_type = !is_add && size->other / 40 % 2 == 0 ? trial->act : TYPE_F32;

    note_shape(trial, "out, in, in stride", out, in, in_stride);
    *args = (struct linear_args){
        .out = trial_operand(trial, "out", is_add ? OPERAND_IN_OUT : OPERAND_OUT, kind_of(out_type),
                             (size_t)trial->rows * out_stride),
        .in = trial_operand(trial, "in", OPERAND_IN, kind_of(trial->act), (size_t)trial->rows * in_stride),
        .weight = make_matrix(trial, 0, "weight", out, in),
        .bias = size->other / 80 % 2 == 0 ? make_f32(trial, "bias", OPERAND_IN, out) : NULL,
        .rows = trial->rows,
        .in_stride = in_stride,
        .out_stride = out_stride,
        .out_type = out_type,
    };
}

static void take_linear(union op_args *args, uint32_t first)
{
    struct linear_args *linear = &args->linear;

    linear->out =
        (unsigned char *)linear->out + (size_t)first * linear->out_stride * kernel_type_bytes(linear->out_type);
    linear->in = offset(linear->in, linear->weight->type, (size_t)first * linear->in_stride);
}

static void make_linear_add(struct trial *trial, const struct trial_size *size)
{
    make_linear(trial, size);
}

static void take_linear_add(union op_args *args, uint32_t first)
{
    take_linear(args, first);
}

static void make_linear_swiglu(struct trial *trial, const struct trial_size *size)
{
    uint32_t out = outputs_of(size), in = size->width;
    bool has_bias = size->other / 80 % 2 == 0;

    note_shape(trial, "out, in", out, in, 0);
    trial->args.linear_swiglu = (struct linear_swiglu_args){
        .out = trial_operand(trial, "out", OPERAND_OUT, kind_of(trial->act), (size_t)trial->rows * out),
        .in = trial_operand(trial, "in", OPERAND_IN, kind_of(trial->act), (size_t)trial->rows * in),
        .gate = make_matrix(trial, 0, "gate", out, in),
        .up = make_matrix(trial, 1, "up", out, in),
        .gate_bias = has_bias ? make_f32(trial, "gate_bias", OPERAND_IN, out) : NULL,
        .up_bias = has_bias ? make_f32(trial, "up_bias", OPERAND_IN, out) : NULL,
        .rows = trial->rows,
        .in_stride = in,
        .out_stride = out,
    };
}

static void take_linear_swiglu(union op_args *args, uint32_t first)
{
    struct linear_swiglu_args *swiglu = &args->linear_swiglu;
    enum kernel_type act = swiglu->gate->type;

    swiglu->out = (unsigned char *)swiglu->out + (size_t)first * swiglu->out_stride * kernel_type_bytes(act);
    swiglu->in = offset(swiglu->in, act, (size_t)first * swiglu->in_stride);
}

/* ---- gelu_erf, convert ---- */

static void make_gelu_erf(struct trial *trial, const struct trial_size *size)
{
    size_t count = (size_t)trial->rows * size->width;
    float *in = make_f32(trial, "in", OPERAND_IN, count);

    note_shape(trial, "width", size->width, 0, 0);
    trial_fill(trial, in, OPERAND_F32, count, 3);
    trial->args.gelu_erf = (struct gelu_erf_args){
        .out = trial_operand(trial, "out", OPERAND_OUT, kind_of(trial->act), count),
        .in = in,
        .rows = trial->rows,
        .width = size->width,
        .out_type = trial->act,
    };
}

static void take_gelu_erf(union op_args *args, uint32_t first)
{
    struct gelu_erf_args *gelu = &args->gelu_erf;
    size_t count = (size_t)first * gelu->width;

    gelu->out = (unsigned char *)gelu->out + count * kernel_type_bytes(gelu->out_type);
    gelu->in += count;
}

static void make_convert(struct trial *trial, const struct trial_size *size)
{
    enum kernel_type in_type = size->other % 2 == 0 ? TYPE_F32 : TYPE_BF16;
    uint32_t in_stride = size->width + size->other % 3, out_stride = size->width + size->other % 5;

    note_shape(trial, "width, strides", size->width, in_stride, out_stride);
    trial->args.convert = (struct convert_args){
        .out = trial_operand(trial, "out", OPERAND_OUT, kind_of(trial->act), (size_t)trial->rows * out_stride),
        .in = trial_operand(trial, "in", OPERAND_IN, kind_of(in_type), (size_t)trial->rows * in_stride),
        .rows = trial->rows,
        .width = size->width,
        .in_stride = in_stride,
        .out_stride = out_stride,
        .in_type = in_type,
        .out_type = trial->act,
    };
}

static void take_convert(union op_args *args, uint32_t first)
{
    struct convert_args *convert = &args->convert;

    convert->out =
        (unsigned char *)convert->out + (size_t)first * convert->out_stride * kernel_type_bytes(convert->out_type);
    convert->in = offset(convert->in, convert->in_type, (size_t)first * convert->in_stride);
}

/* ---- rotary ---- */

static void make_rotary_table(struct trial *trial, const struct trial_size *size)
{
    uint32_t half = 1 + size->width % 128;
    int32_t(*positions)[3] =
        trial_operand(trial, "positions", OPERAND_IN, OPERAND_BYTES, trial->rows * sizeof *positions);
    uint8_t *axis = trial_operand(trial, "axis", OPERAND_IN, OPERAND_BYTES, half);
    float *frequency = make_f32(trial, "frequency", OPERAND_IN, half);

    note_shape(trial, "half", half, 0, 0);
    for (uint32_t r = 0; r < trial->rows; r++) {
        for (int a = 0; a < 3; a++) {
            positions[r][a] = (int32_t)trial_random(trial, 131072);
        }
    }
    for (uint32_t j = 0; j < half; j++) {
        axis[j] = (uint8_t)trial_random(trial, 3);
        frequency[j] = (float)pow(1e6, -(double)j / half);
    }
    trial->args.rotary_table = (struct rotary_table_args){
        .cos = make_f32(trial, "cos", OPERAND_OUT, (size_t)trial->rows * half),
        .sin = make_f32(trial, "sin", OPERAND_OUT, (size_t)trial->rows * half),
        .positions = (const int32_t(*)[3])positions,
        .axis = axis,
        .frequency = frequency,
        .rows = trial->rows,
        .half = half,
    };
}

static void take_rotary_table(union op_args *args, uint32_t first)
{
    struct rotary_table_args *table = &args->rotary_table;

    table->cos += (size_t)first * table->half;
    table->sin += (size_t)first * table->half;
    table->positions += first;
}

static void make_rotary(struct trial *trial, const struct trial_size *size)
{
    static const uint32_t halves[] = {64, 40, 36, 32, 1, 17, 128};
    uint32_t half = halves[size->other % 7], heads = 1 + size->width % 5;
    uint32_t stride = heads * half * 2 + size->other % 3 * 7;

    note_shape(trial, "heads, half, stride", heads, half, stride);
    trial->args.rotary = (struct rotary_args){
        .data = make_f32(trial, "data", OPERAND_IN_OUT, (size_t)trial->rows * stride),
        .cos = make_f32(trial, "cos", OPERAND_IN, (size_t)trial->rows * half),
        .sin = make_f32(trial, "sin", OPERAND_IN, (size_t)trial->rows * half),
        .rows = trial->rows,
        .heads = heads,
        .half = half,
        .row_stride = stride,
    };
}

static void take_rotary(union op_args *args, uint32_t first)
{
    struct rotary_args *rotary = &args->rotary;

    rotary->data += (size_t)first * rotary->row_stride;
    rotary->cos += (size_t)first * rotary->half;
    rotary->sin += (size_t)first * rotary->half;
}

/* ---- kv_write, attention ---- */

enum { SEQUENCES = 3 };

/* Pages for SEQUENCES sequences of `pages` pages each, with foreign bytes between; numbers shuffled. */
static void make_store(struct trial *trial, uint32_t pages, uint32_t kv_heads, uint32_t head_dim,
                       enum operand_role role)
{
    struct kv_store *store = &trial->store;
    uint32_t page_count = SEQUENCES * pages, *numbers;
    size_t layer_bytes = kv_store_layer_bytes(kv_heads, head_dim, trial->act), stride = layer_bytes + 128;

    *store =
        (struct kv_store){.page_stride_bytes = stride, .kv_heads = kv_heads, .head_dim = head_dim, .type = trial->act};
    store->data =
        trial_operand(trial, "pages", role, kind_of(trial->act), page_count * stride / kernel_type_bytes(trial->act));
    memset(store->data, 0xff, page_count * stride); /* NaN where nothing is written */
    numbers = trial_operand(trial, "numbers", OPERAND_IN, OPERAND_BYTES, page_count * sizeof *numbers);
    for (uint32_t i = 0; i < page_count; i++) {
        uint32_t other = trial_random(trial, i + 1);
        numbers[i] = numbers[other];
        numbers[other] = i;
    }
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        trial->sequences[s] = (struct kv_sequence){&numbers[s * pages], pages};
    }
}

/* Writes a random key and value through the oracle of kv_write: the trial's pages are inputs. */
static void fill_slot(struct trial *trial, uint32_t sequence, uint32_t index)
{
    float k[8 * HEAD_DIM_MAX], v[8 * HEAD_DIM_MAX];
    struct kv_row place = {.sequence = sequence, .index = index};
    uint32_t width = trial->store.kv_heads * trial->store.head_dim;
    struct kv_write_args args = {&trial->store, k, v, &place, trial->sequences, 1, width, width};
    enum kernel_level level = kernels_level();

    trial_fill(trial, k, OPERAND_F32, width, 1);
    trial_fill(trial, v, OPERAND_F32, width, 1);
    kernels_use(LEVEL_REF);
    op_launch(OP_KV_WRITE, &args, &team_serial, NULL);
    kernels_use(level);
}

static void make_kv_write(struct trial *trial, const struct trial_size *size)
{
    static const uint32_t dims[] = {128, 80, 72, 64, 2, 18, 256};
    uint32_t dim = dims[size->other % 7], kv_heads = 1 + size->width % 4, width = kv_heads * dim;
    uint32_t k_stride = width + 3, v_stride = width;
    struct kv_row *places = trial_operand(trial, "places", OPERAND_IN, OPERAND_BYTES, trial->rows * sizeof *places);

    note_shape(trial, "kv heads, dim", kv_heads, dim, 0);
    make_store(trial, (trial->rows + 47) / KV_PAGE_TOKENS, kv_heads, dim, OPERAND_IN_OUT);
    for (uint32_t r = 0; r < trial->rows; r++) { /* distinct slots: a walk through each sequence */
        places[r] = (struct kv_row){r % SEQUENCES, r / SEQUENCES + size->other % 17, 0, 1};
    }
    trial->args.kv_write = (struct kv_write_args){
        .store = &trial->store,
        .k = make_f32(trial, "k", OPERAND_IN, (size_t)trial->rows * k_stride),
        .v = make_f32(trial, "v", OPERAND_IN, (size_t)trial->rows * v_stride),
        .places = places,
        .sequences = trial->sequences,
        .rows = trial->rows,
        .k_stride = k_stride,
        .v_stride = v_stride,
    };
}

static void take_kv_write(union op_args *args, uint32_t first)
{
    struct kv_write_args *write = &args->kv_write;

    write->k += (size_t)first * write->k_stride;
    write->v += (size_t)first * write->v_stride;
    write->places += first;
}

/* Which keys the rows see: decode rows of several sequences, chunks of a prompt, or windows of a picture. */
static void place_rows(struct trial *trial, struct kv_row *places, uint32_t keys, uint32_t pattern)
{
    uint32_t sequence = 0, index = trial_random(trial, keys);

    for (uint32_t r = 0; r < trial->rows; r++) {
        if (pattern == 0 || index >= keys || trial_random(trial, 30) == 0) {
            sequence = trial_random(trial, SEQUENCES);
            index = trial_random(trial, keys);
        }
        places[r] = (struct kv_row){sequence, index, 0, index + 1};
        if (pattern == 2) { /* windows of 36 keys, the last one cut */
            uint32_t first = index / 36 * 36;
            places[r].key_first = first;
            places[r].key_end = first + 36 < keys ? first + 36 : keys;
        }
        index++;
    }
}

static void make_attention(struct trial *trial, const struct trial_size *size)
{
    static const uint32_t dims[] = {128, 80, 72, 64, 2, 18, 256}, key_counts[] = {1, 15, 16, 17, 63, 64, 65, 150, 300};
    uint32_t dim = dims[size->other % 7], kv_heads = 1 + size->width % 3, group = 1 + size->other / 7 % 8;
    uint32_t heads = kv_heads * group, keys = key_counts[size->other / 11 % 9],
             stride = heads * dim + size->other % 2 * 8;
    struct kv_row *places = trial_operand(trial, "places", OPERAND_IN, OPERAND_BYTES, trial->rows * sizeof *places);
    enum kernel_type q_type = size->other / 3 % 2 == 0 ? TYPE_F32 : trial->act;

    snprintf(trial->shape, sizeof trial->shape, "%s rows %u, heads %u/%u, dim %u, keys %u",
             trial->act == TYPE_BF16 ? "bf16" : "f32", trial->rows, heads, kv_heads, dim, keys);
    trial->is_corner = false;
    make_store(trial, (keys + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS, kv_heads, dim, OPERAND_IN);
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        for (uint32_t i = 0; i < keys; i++) {
            fill_slot(trial, s, i);
        }
    }
    place_rows(trial, places, keys, size->other / 5 % 3);
    void *q = trial_operand(trial, "q", OPERAND_IN, kind_of(q_type), (size_t)trial->rows * stride);
    if (size->other % 17 == 0) { /* all keys alike: the mean of V */
        trial_fill(trial, q, kind_of(q_type), (size_t)trial->rows * stride, 0);
    }
    trial->args.attention = (struct attention_args){
        .out = trial_operand(trial, "out", OPERAND_OUT, kind_of(trial->act), (size_t)trial->rows * heads * dim),
        .q = q,
        .store = &trial->store,
        .places = places,
        .sequences = trial->sequences,
        .rows = trial->rows,
        .heads = heads,
        .q_stride = stride,
        .q_type = q_type,
        .scale = (size->other % 13 == 0 ? 30 : 1) / sqrtf((float)dim), /* sometimes one key takes all */
    };
}

static void take_attention(union op_args *args, uint32_t first)
{
    struct attention_args *attention = &args->attention;
    size_t width = (size_t)attention->heads * attention->store->head_dim;

    attention->out = (unsigned char *)attention->out + first * width * kernel_type_bytes(attention->store->type);
    attention->q = offset(attention->q, attention->q_type, (size_t)first * attention->q_stride);
    attention->places += first;
}

/* ---- patchify, scatter_rows ---- */

static void make_patchify(struct trial *trial, const struct trial_size *size)
{
    uint32_t merge = 1 + size->other % 3, patch = 1 + size->other % 14, frames = 1 + size->other % 2;
    uint32_t grid_h = merge * (1 + size->other / 3 % 6), grid_w = merge * (1 + size->width % 7);
    uint32_t groups = grid_h * grid_w / (merge * merge), patches = grid_h * grid_w;
    uint32_t *order = trial_operand(trial, "order", OPERAND_IN, OPERAND_BYTES, groups * sizeof *order);

    trial->rows = trial->rows < patches ? trial->rows : patches;
    for (uint32_t i = 0; i < groups; i++) {
        uint32_t other = trial_random(trial, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    note_shape(trial, "grid, patch", grid_h, grid_w, patch);
    uint8_t *rgb = trial_operand(trial, "rgb", OPERAND_IN, OPERAND_BYTES, (size_t)patches * patch * patch * 3);
    trial_fill(trial, rgb, OPERAND_BYTES, (size_t)patches * patch * patch * 3, 1);
    trial->args.patchify = (struct patchify_args){
        .out = trial_operand(trial, "out", OPERAND_OUT, kind_of(trial->act),
                             (size_t)trial->rows * 3 * frames * patch * patch),
        .rgb = rgb,
        .normalize = (const float(*)[256])make_f32(trial, "normalize", OPERAND_IN, 3 * 256),
        .order = size->other % 4 == 0 ? NULL : order,
        .grid_h = grid_h,
        .grid_w = grid_w,
        .patch = patch,
        .merge = merge,
        .frames = frames,
        .row_first = trial_random(trial, patches - trial->rows + 1),
        .rows = trial->rows,
        .out_type = trial->act,
    };
}

static void take_patchify(union op_args *args, uint32_t first)
{
    struct patchify_args *patchify = &args->patchify;
    size_t width = (size_t)3 * patchify->frames * patchify->patch * patchify->patch;

    patchify->out = (unsigned char *)patchify->out + first * width * kernel_type_bytes(patchify->out_type);
    patchify->row_first += first;
}

static void make_scatter_rows(struct trial *trial, const struct trial_size *size)
{
    uint32_t width = size->width, pages = trial->rows / MM_PAGE_TOKENS + 1;
    size_t page_elements = (size_t)MM_PAGE_TOKENS * width;
    uint32_t *order = trial_operand(trial, "order", OPERAND_IN, OPERAND_BYTES, trial->rows * sizeof *order);
    unsigned char *out = trial_operand(trial, "out", OPERAND_OUT, kind_of(trial->act), pages * page_elements);

    note_shape(trial, "width", width, 0, 0);
    for (uint32_t i = 0; i < trial->rows; i++) {
        uint32_t other = trial_random(trial, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (uint32_t p = 0; p < pages; p++) { /* last page first */
        trial->pointers[p] = offset(out, trial->act, (pages - 1 - p) * page_elements);
    }
    trial->args.scatter_rows = (struct scatter_rows_args){
        .pages = (void *const *)(const void *)trial->pointers,
        .in = trial_operand(trial, "in", OPERAND_IN, kind_of(trial->act), (size_t)trial->rows * width),
        .order = order,
        .rows = trial->rows,
        .width = width,
        .type = trial->act,
    };
}

static void take_scatter_rows(union op_args *args, uint32_t first)
{
    struct scatter_rows_args *scatter = &args->scatter_rows;

    scatter->in = offset(scatter->in, scatter->type, (size_t)first * scatter->width);
    scatter->order += first;
}

/* ---- the table ---- */

void trial_make(struct trial *trial, const struct trial_size *size)
{
    static void (*const makers[])(struct trial *, const struct trial_size *) = {
#define OP(NAME, name, ...) make_##name,
#include "kernels/op_table.h"
    };

    makers[trial->op](trial, size);
}

void trial_take_rows(const struct trial *trial, union op_args *args, uint32_t first, uint32_t count)
{
    static void (*const takers[])(union op_args *, uint32_t) = {
#define OP(NAME, name, ...) take_##name,
#include "kernels/op_table.h"
    };

    *args = trial->args;
    takers[trial->op](args, first);
    switch (trial->op) {
#define OP(NAME, name, ...)                                                                                            \
    case OP_##NAME:                                                                                                    \
        args->name.rows = count;                                                                                       \
        break;
#include "kernels/op_table.h"
    case OP_COUNT:
        assert(false && "op");
    }
}
