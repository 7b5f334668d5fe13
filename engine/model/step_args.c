/* step_args: from a row of a step table to the operands of a launch. One function an op; none knows a model's name.
 *
 * Always true: what plan_steps checked on symbols is not checked again; what kernels check (op_check) is not either.
 */
#include "engine/model/step_args.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

static const struct buffer_row *holder_of(const struct step_frame *frame, enum buffer buffer)
{
    assert(buffer != NO_BUFFER);
    return plan_steps_buffer(frame->arch, plan_steps_holder(frame->arch, buffer));
}

static enum kernel_type type_of(const struct step_frame *frame, enum buffer buffer)
{
    return holder_of(frame, buffer)->kind == ACT ? frame->act : TYPE_F32;
}

static uint32_t width_of(const struct step_frame *frame, enum buffer buffer)
{
    return frame->dims[plan_steps_buffer(frame->arch, buffer)->shape[1]];
}

static uint32_t rows_of(const struct step_frame *frame, enum buffer buffer)
{
    enum dim rows = plan_steps_buffer(frame->arch, buffer)->shape[0];

    assert(frame->rows[rows] <= frame->dims[rows]);
    return frame->rows[rows];
}

/* Elements from a row to the next: a view of columns strides as its holder. */
static uint32_t stride_of(const struct step_frame *frame, enum buffer buffer)
{
    const struct buffer_row *row = plan_steps_buffer(frame->arch, buffer), *holder = holder_of(frame, buffer);

    return frame->dims[row->shape[0] == holder->shape[0] ? holder->shape[1] : row->shape[1]];
}

void *step_args_address(const struct step_frame *frame, enum buffer buffer)
{
    const struct buffer_row *row = plan_steps_buffer(frame->arch, buffer), *holder = holder_of(frame, buffer);
    size_t element = kernel_type_bytes(type_of(frame, buffer));

    if (holder->kind == EXTERNAL) {
        return frame->logits;
    }
    if (frame->memory == NULL) {
        return NULL;
    }
    size_t first = holder->kind == STATE ? (size_t)frame->first_patch * frame->dims[holder->shape[1]] : 0;
    return frame->memory + frame->plan->offset[holder->buffer] + (first + frame->dims[row->at]) * element;
}

static void fill_linear(const struct step_frame *frame, const struct step_row *row, uint32_t layer,
                        struct step_call *call)
{
    assert(row->weight[0] != 0);
    call->matrix[0] = weights_matrix(frame->bank, row->weight[0], layer);
    call->args.linear = (struct linear_args){
        .out = step_args_address(frame, row->out),
        .in = step_args_address(frame, row->in[0]),
        .weight = &call->matrix[0],
        .bias = weights_vector(frame->bank, row->bias[0], layer),
        .rows = rows_of(frame, row->out),
        .in_stride = stride_of(frame, row->in[0]),
        .out_stride = stride_of(frame, row->out),
        .out_type = type_of(frame, row->out),
    };
}

static void fill_linear_swiglu(const struct step_frame *frame, const struct step_row *row, uint32_t layer,
                               struct step_call *call)
{
    assert(row->weight[0] != 0 && row->weight[1] != 0);
    call->matrix[0] = weights_matrix(frame->bank, row->weight[0], layer);
    call->matrix[1] = weights_matrix(frame->bank, row->weight[1], layer);
    call->args.linear_swiglu = (struct linear_swiglu_args){
        .out = step_args_address(frame, row->out),
        .in = step_args_address(frame, row->in[0]),
        .gate = &call->matrix[0],
        .up = &call->matrix[1],
        .gate_bias = weights_vector(frame->bank, row->bias[0], layer),
        .up_bias = weights_vector(frame->bank, row->bias[1], layer),
        .rows = rows_of(frame, row->out),
        .in_stride = stride_of(frame, row->in[0]),
        .out_stride = stride_of(frame, row->out),
    };
}

static void fill_embed(const struct step_frame *frame, const struct step_row *row, struct step_call *call)
{
    call->matrix[0] = weights_matrix(frame->bank, row->weight[0], 0);
    call->args.embed = (struct embed_args){
        .out = step_args_address(frame, row->out),
        .ids = frame->ids,
        .features = frame->features,
        .table = &call->matrix[0],
        .rows = rows_of(frame, row->out),
    };
}

static void fill_rmsnorm(const struct step_frame *frame, const struct step_row *row, uint32_t layer,
                         struct step_call *call)
{
    assert(stride_of(frame, row->in[0]) == width_of(frame, row->in[0]));
    assert(stride_of(frame, row->out) == width_of(frame, row->out));
    call->args.rmsnorm = (struct rmsnorm_args){
        .out = step_args_address(frame, row->out),
        .in = step_args_address(frame, row->in[0]),
        .weight = weights_vector(frame->bank, row->weight[0], layer),
        .rows = rows_of(frame, row->out),
        .width = width_of(frame, row->in[0]),
        .eps = frame->eps,
        .out_type = type_of(frame, row->out),
    };
}

static void fill_gelu_erf(const struct step_frame *frame, const struct step_row *row, struct step_call *call)
{
    assert(stride_of(frame, row->in[0]) == width_of(frame, row->in[0]));
    call->args.gelu_erf = (struct gelu_erf_args){
        .out = step_args_address(frame, row->out),
        .in = step_args_address(frame, row->in[0]),
        .rows = rows_of(frame, row->out),
        .width = width_of(frame, row->in[0]),
        .out_type = type_of(frame, row->out),
    };
}

static void fill_rotary_table(const struct step_frame *frame, const struct step_row *row, struct step_call *call)
{
    assert(width_of(frame, row->out) == frame->dims[frame->heads->half_dim]);
    call->args.rotary_table = (struct rotary_table_args){
        .cos = step_args_address(frame, row->out),
        .sin = step_args_address(frame, row->in[0]),
        .positions = frame->positions,
        .axis = frame->axis,
        .frequency = frame->frequency,
        .rows = rows_of(frame, row->out),
        .half = frame->dims[frame->heads->half_dim],
    };
}

static void fill_rotary(const struct step_frame *frame, const struct step_row *row, struct step_call *call)
{
    uint32_t head_dim = frame->dims[frame->heads->head_dim];

    assert(width_of(frame, row->out) % head_dim == 0);
    call->args.rotary = (struct rotary_args){
        .data = step_args_address(frame, row->out),
        .cos = step_args_address(frame, row->in[0]),
        .sin = step_args_address(frame, row->in[1]),
        .rows = rows_of(frame, row->out),
        .heads = width_of(frame, row->out) / head_dim,
        .half = frame->dims[frame->heads->half_dim],
        .row_stride = stride_of(frame, row->out),
    };
}

static void fill_kv_write(const struct step_frame *frame, const struct step_row *row, struct step_call *call)
{
    assert(width_of(frame, row->in[0]) == frame->store.kv_heads * frame->store.head_dim);
    call->args.kv_write = (struct kv_write_args){
        .store = &frame->store,
        .k = step_args_address(frame, row->in[0]),
        .v = step_args_address(frame, row->in[1]),
        .places = frame->places,
        .sequences = frame->sequences,
        .rows = rows_of(frame, row->in[0]),
        .k_stride = stride_of(frame, row->in[0]),
        .v_stride = stride_of(frame, row->in[1]),
    };
}

static void fill_attention(const struct step_frame *frame, const struct step_row *row, struct step_call *call)
{
    assert(width_of(frame, row->out) == frame->dims[frame->heads->heads] * frame->store.head_dim);
    assert(frame->dims[frame->heads->heads] % frame->store.kv_heads == 0);
    call->args.attention = (struct attention_args){
        .out = step_args_address(frame, row->out),
        .q = step_args_address(frame, row->in[0]),
        .store = &frame->store,
        .places = frame->places,
        .sequences = frame->sequences,
        .rows = rows_of(frame, row->out),
        .heads = frame->dims[frame->heads->heads],
        .q_stride = stride_of(frame, row->in[0]),
        .q_type = type_of(frame, row->in[0]),
        .scale = 1.0F / sqrtf((float)frame->dims[frame->heads->head_dim]),
    };
}

static void fill_patchify(const struct step_frame *frame, const struct step_row *row, struct step_call *call)
{
    assert(frame->first_patch % frame->dims[V_GROUP] == 0);
    call->args.patchify = (struct patchify_args){
        .out = step_args_address(frame, row->out),
        .rgb = frame->rgb,
        .normalize = frame->normalize,
        .order = frame->order,
        .grid_h = frame->grid_h,
        .grid_w = frame->grid_w,
        .patch = frame->dims[V_PATCH],
        .merge = frame->dims[V_MERGE],
        .frames = frame->dims[V_FRAMES],
        .row_first = frame->first_patch,
        .rows = rows_of(frame, row->out),
        .out_type = type_of(frame, row->out),
    };
}

static void fill_scatter_rows(const struct step_frame *frame, const struct step_row *row, struct step_call *call)
{
    assert(frame->first_patch % frame->dims[V_GROUP] == 0);
    call->args.scatter_rows = (struct scatter_rows_args){
        .pages = frame->pages,
        .in = step_args_address(frame, row->in[0]),
        .order = frame->order == NULL ? NULL : frame->order + frame->first_patch / frame->dims[V_GROUP],
        .rows = rows_of(frame, row->in[0]),
        .width = width_of(frame, row->in[0]),
        .type = type_of(frame, row->in[0]),
    };
}

void step_args_fill(const struct step_frame *frame, const struct step_row *row, uint32_t layer, struct step_call *call)
{
    switch (row->op) {
    case OP_EMBED:
        fill_embed(frame, row, call);
        return;
    case OP_RMSNORM:
        fill_rmsnorm(frame, row, layer, call);
        return;
    case OP_LINEAR:
    case OP_LINEAR_ADD:
        fill_linear(frame, row, layer, call);
        return;
    case OP_LINEAR_SWIGLU:
        fill_linear_swiglu(frame, row, layer, call);
        return;
    case OP_GELU_ERF:
        fill_gelu_erf(frame, row, call);
        return;
    case OP_ROTARY_TABLE:
        fill_rotary_table(frame, row, call);
        return;
    case OP_ROTARY:
        fill_rotary(frame, row, call);
        return;
    case OP_KV_WRITE:
        fill_kv_write(frame, row, call);
        return;
    case OP_ATTENTION:
        fill_attention(frame, row, call);
        return;
    case OP_PATCHIFY:
        fill_patchify(frame, row, call);
        return;
    case OP_SCATTER_ROWS:
        fill_scatter_rows(frame, row, call);
        return;
    case OP_CONVERT:
    case OP_COUNT:
        break;
    }
    assert(false && "an op that no table uses");
}
