/* step_args: operands of the launches that a step table makes: strides of views, offsets of tiles, kinds of buffers. */
#include "engine/model/step_args.h"

#include "engine/model/run_state.h"
#include "tests/harness.h"

#include <string.h>

static struct checkpoint checkpoint;
static struct model model;
static unsigned char memory[64];

/* A frame with addresses that are compared and never followed. */
static struct step_frame *open_frame(bool is_vision)
{
    memcpy(model.dims, checkpoint.dims, sizeof model.dims);
    model.checkpoint = &checkpoint;
    model.act = TYPE_BF16;
    model.dims[TOKENS] = 100;
    model.dims[LOGIT_ROWS] = 3;
    model.dims[PATCHES] = 1024;
    model.dims[TILE_ROWS] = 64;
    model.dims[TILE_GROUPS] = 16;
    weights_place(&model.bank, &checkpoint, TYPE_BF16);
    plan_steps_place(checkpoint.arch, model.dims, TYPE_BF16, &model.plan);
    run_measure_frames(&model);
    struct step_frame *frame = is_vision ? &model.vision : &model.text;
    frame->memory = memory;
    return frame;
}

static const struct step_row *find_row(const struct step_row *row, enum op op)
{
    while (row->op != op) {
        CU_ASSERT_FATAL(row->op != OP_COUNT);
        row++;
    }
    return row;
}

static unsigned char *at(const struct step_frame *frame, enum buffer buffer)
{
    return frame->memory + frame->plan->offset[buffer];
}

static void views_stride_as_their_holder(void)
{
    struct step_frame *frame = open_frame(false);
    const uint32_t *dims = frame->dims;
    struct step_call call;
    step_args_fill(frame, find_row(checkpoint.arch->layer_steps, OP_KV_WRITE), 0, &call);
    CU_ASSERT(call.args.kv_write.k_stride == dims[QKV_OUT] && call.args.kv_write.v_stride == dims[QKV_OUT]);
    CU_ASSERT_PTR_EQUAL((const unsigned char *)call.args.kv_write.k, at(frame, QKV) + 4 * dims[Q_OUT]);
    CU_ASSERT_PTR_EQUAL((const unsigned char *)call.args.kv_write.v, at(frame, QKV) + 4 * dims[QK_OUT]);
    step_args_fill(frame, find_row(checkpoint.arch->layer_steps, OP_ROTARY), 0, &call);
    CU_ASSERT(call.args.rotary.heads == dims[HEADS] + dims[KV_HEADS] && call.args.rotary.row_stride == dims[QKV_OUT]);
    step_args_fill(frame, find_row(checkpoint.arch->layer_steps, OP_ATTENTION), 0, &call);
    CU_ASSERT(call.args.attention.q_stride == dims[QKV_OUT] && call.args.attention.q_type == TYPE_F32);
    CU_ASSERT_DOUBLE_EQUAL(call.args.attention.scale, 1 / 11.313708498984761, 1e-7);
}

static void tiles_are_parts_of_the_state_only(void)
{
    struct step_frame *frame = open_frame(true);
    struct step_call call;
    frame->first_patch = 128;
    frame->rows[TILE_ROWS] = frame->rows[PATCHES] = 40;
    step_args_fill(frame, find_row(checkpoint.arch->rest_steps, OP_LINEAR_ADD), 0, &call);
    CU_ASSERT_EQUAL(call.args.linear.rows, 40);
    CU_ASSERT_PTR_EQUAL((unsigned char *)call.args.linear.out, at(frame, VX) + 4 * 128 * (size_t)frame->dims[V_HIDDEN]);
    CU_ASSERT_PTR_EQUAL((const unsigned char *)call.args.linear.in, at(frame, VATTENDED));
}

static void groups_are_the_same_bytes_in_another_shape(void)
{
    struct step_frame *frame = open_frame(true);
    struct step_call call;
    const struct step_row *row = find_row(checkpoint.arch->merge_steps, OP_LINEAR);
    step_args_fill(frame, row, 0, &call);
    CU_ASSERT(call.args.linear.rows == 16 && call.args.linear.in_stride == frame->dims[V_MERGED]);
    CU_ASSERT_PTR_EQUAL((const unsigned char *)call.args.linear.in, at(frame, VNORMED));
    CU_ASSERT_EQUAL(call.args.linear.out_type, TYPE_F32);
}

static void picked_rows_and_logits_are_the_callers(void)
{
    struct step_frame *frame = open_frame(false);
    struct step_call call;
    float logits[1];
    frame->logits = logits;
    step_args_fill(frame, find_row(checkpoint.arch->end_steps, OP_LINEAR), 0, &call);
    CU_ASSERT_PTR_EQUAL(call.args.linear.out, (void *)logits);
    CU_ASSERT(call.args.linear.rows == 3 && call.args.linear.out_stride == frame->dims[VOCAB]);
    CU_ASSERT(call.args.linear.bias == NULL);
}

static void measuring_asks_the_same_of_every_op(void)
{
    const struct step_row *const tables[] = {checkpoint.arch->begin_steps, checkpoint.arch->layer_steps,
                                             checkpoint.arch->end_steps,   checkpoint.arch->patch_steps,
                                             checkpoint.arch->keys_steps,  checkpoint.arch->rest_steps,
                                             checkpoint.arch->merge_steps};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        struct step_frame *frame = open_frame(t >= 3);
        frame->memory = NULL;
        for (const struct step_row *row = tables[t]; row->op != OP_COUNT; row++) {
            struct step_call call;
            step_args_fill(frame, row, 0, &call);
            CU_ASSERT_PTR_NULL(op_check(row->op, &call.args));
        }
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(views_stride_as_their_holder),
        CASE(tiles_are_parts_of_the_state_only),
        CASE(groups_are_the_same_bytes_in_another_shape),
        CASE(picked_rows_and_logits_are_the_callers),
        CASE(measuring_asks_the_same_of_every_op),
        {NULL, NULL},
    };
    checkpoint_read(&checkpoint, &(struct checkpoint_source){.folder = "tests/data/models/Qwen2.5-VL-7B-Instruct"});
    return harness_run(argc, argv, "step_args", cases, NULL);
}
