/* op: from the table's rows to a checked launch.
 *
 * Always true: an op is launched only with shapes that its check accepts, by the implementation of the level in use.
 */
#include "kernels/op.h"

#include "kernels/cpu/cpu.h"

#include <assert.h>

/* Each check says what its op cannot run; the shapes that all can are not mentioned. */

static const char *check_matrix(const struct packed_matrix *matrix)
{
    if (matrix->type == TYPE_F16) {
        return "a packed matrix is bf16 or f32";
    }
    if (matrix->out == 0 || matrix->in == 0) {
        return "an empty matrix";
    }
    return matrix->type == TYPE_BF16 && matrix->in % 2 != 0 ? "an odd number of inputs in bf16" : NULL;
}

static const char *check_embed(const void *arguments)
{
    const struct embed_args *args = arguments;

    return check_matrix(args->table);
}

static const char *check_width(uint32_t width, enum kernel_type type)
{
    if (type == TYPE_F16) {
        return "rows are bf16 or f32";
    }
    return width == 0 ? "rows without elements" : NULL;
}

static const char *check_rmsnorm(const void *arguments)
{
    const struct rmsnorm_args *args = arguments;

    return check_width(args->width, args->out_type);
}

static const char *check_linear(const void *arguments)
{
    const struct linear_args *args = arguments;

    if (args->in_stride < args->weight->in || args->out_stride < args->weight->out) {
        return "a stride shorter than its row";
    }
    if (args->out_type != TYPE_F32 && args->out_type != args->weight->type) {
        return "an output that is neither f32 nor of the weight's type";
    }
    return check_matrix(args->weight);
}

static const char *check_linear_add(const void *arguments)
{
    const struct linear_args *args = arguments;

    return args->out_type != TYPE_F32 ? "a residual stream that is not f32" : check_linear(arguments);
}

static const char *check_linear_swiglu(const void *arguments)
{
    const struct linear_swiglu_args *args = arguments;

    if (args->gate->in != args->up->in || args->gate->out != args->up->out || args->gate->type != args->up->type) {
        return "gate and up of different shapes";
    }
    if (args->in_stride < args->gate->in || args->out_stride < args->gate->out) {
        return "a stride shorter than its row";
    }
    return check_matrix(args->gate);
}

static const char *check_gelu_erf(const void *arguments)
{
    const struct gelu_erf_args *args = arguments;

    return check_width(args->width, args->out_type);
}

static const char *check_convert(const void *arguments)
{
    const struct convert_args *args = arguments;

    if (args->in_stride < args->width || args->out_stride < args->width) {
        return "a stride shorter than its row";
    }
    const char *reason = check_width(args->width, args->in_type);
    return reason != NULL ? reason : check_width(args->width, args->out_type);
}

static const char *check_half(uint32_t half)
{
    return half == 0 || half > HEAD_DIM_MAX / 2 ? "a head of no elements, or of more than HEAD_DIM_MAX" : NULL;
}

static const char *check_rotary_table(const void *arguments)
{
    const struct rotary_table_args *args = arguments;

    return check_half(args->half);
}

static const char *check_rotary(const void *arguments)
{
    const struct rotary_args *args = arguments;

    if (args->heads == 0 || (uint64_t)args->heads * args->half * 2 > args->row_stride) {
        return "no heads, or more than a row holds";
    }
    return check_half(args->half);
}

static const char *check_store(const struct kv_store *store)
{
    if (store->type == TYPE_F16) {
        return "KV pages are bf16 or f32";
    }
    if (store->head_dim == 0 || store->head_dim > HEAD_DIM_MAX || store->head_dim % 2 != 0) {
        return "a head that is odd or larger than HEAD_DIM_MAX";
    }
    if (store->kv_heads == 0 || store->page_stride_bytes % 64 != 0 ||
        store->page_stride_bytes < kv_store_layer_bytes(store->kv_heads, store->head_dim, store->type)) {
        return "pages smaller than a layer, or not a multiple of 64 bytes";
    }
    return NULL;
}

static const char *check_kv_write(const void *arguments)
{
    const struct kv_write_args *args = arguments;
    uint64_t width = (uint64_t)args->store->kv_heads * args->store->head_dim;

    return args->k_stride < width || args->v_stride < width ? "a stride shorter than its row"
                                                            : check_store(args->store);
}

static const char *check_attention(const void *arguments)
{
    const struct attention_args *args = arguments;
    const struct kv_store *store = args->store;
    const char *reason = check_store(store);

    if (reason != NULL) {
        return reason;
    }
    if (args->heads == 0 || args->heads % store->kv_heads != 0 || args->heads / store->kv_heads > 64) {
        return "query heads that are no multiple of the key heads, or more than 64 a key head";
    }
    if (args->q_stride < (uint64_t)args->heads * store->head_dim) {
        return "a stride shorter than its row";
    }
    return args->q_type != TYPE_F32 && args->q_type != store->type
               ? "a query that is neither f32 nor of the pages' type"
               : NULL;
}

static const char *check_patchify(const void *arguments)
{
    const struct patchify_args *args = arguments;

    if (args->patch == 0 || args->merge == 0 || args->frames == 0) {
        return "a patch without pixels";
    }
    if (args->grid_h % args->merge != 0 || args->grid_w % args->merge != 0) {
        return "a grid that is no multiple of the merge size";
    }
    if ((uint64_t)args->row_first + args->rows > (uint64_t)args->grid_h * args->grid_w) {
        return "more rows than patches";
    }
    return check_width(1, args->out_type);
}

static const char *check_scatter_rows(const void *arguments)
{
    const struct scatter_rows_args *args = arguments;

    return check_width(args->width, args->type);
}

struct op_row {
    const char *name;
    const char *(*check)(const void *args);
    workspace_function *workspace;
    ref_function *ref;
    cpu_function *cpu;
};

static const struct op_row op_rows[] = {
#define OP(NAME, name, args, workspace, ...) {#name, check_##name, workspace, ref_##name, cpu_##name},
#include "kernels/op_table.h"
};

static enum kernel_level level_in_use = LEVEL_GENERIC;

bool kernels_use(enum kernel_level level)
{
    const struct cpu_kernels *kernels = cpu_kernels_for(level);

    if (kernels == NULL) {
        return false;
    }
    cpu_kernels = kernels;
    level_in_use = level;
    return true;
}

void kernels_choose(void)
{
    enum kernel_level level = LEVEL_COUNT;

    do {
        level--;
    } while (!cpu_kernels_are_worth(level) || !kernels_use(level));
    assert(level_in_use >= LEVEL_GENERIC);
}

enum kernel_level kernels_level(void)
{
    return level_in_use;
}

const char *kernels_level_name(enum kernel_level level)
{
    static const char *const names[LEVEL_COUNT] = {"ref", "generic", "avx2", "avx512", "avx512bf16", "amx"};

    assert(level < LEVEL_COUNT);
    return names[level];
}

const char *op_name(enum op op)
{
    assert(op < OP_COUNT);
    return op_rows[op].name;
}

const char *op_check(enum op op, const void *args)
{
    assert(op < OP_COUNT);
    return op_rows[op].check(args);
}

size_t op_workspace_bytes(enum op op, const void *args, uint32_t worker_count)
{
    assert(op_check(op, args) == NULL);
    return op_rows[op].workspace(args, worker_count);
}

void op_launch(enum op op, const void *args, struct team *team, void *workspace)
{
    assert(op_check(op, args) == NULL);
    assert((uintptr_t)workspace % 64 == 0);

    if (level_in_use == LEVEL_REF) {
        op_rows[op].ref(args);
    } else {
        op_rows[op].cpu(args, team, workspace);
    }
}
