/* plan_steps: the tables of the 7B pass; a weight swapped for another of equal size does not; buffers that live
 * together never share a byte, and the live peak is what the lifetimes make it.
 */
#include "engine/model/plan_steps.h"

#include "engine/model/checkpoint.h"
#include "tests/harness.h"

#include <string.h>

enum { ROWS_MAX = 16 };

static struct checkpoint checkpoint;
static struct step_row steps[ROWS_MAX];
static struct arch arch;

/* A copy of the architecture whose layer table may be spoiled. */
static void copy_layer(void)
{
    const struct step_row *row = checkpoint.arch->layer_steps;
    uint32_t count = 0;
    do {
        CU_ASSERT_FATAL(count < ROWS_MAX);
        steps[count] = row[count];
    } while (row[count++].op != OP_COUNT);
    arch = *checkpoint.arch;
    arch.layer_steps = steps;
}

static struct step_row *row_of(enum op op, enum buffer out)
{
    for (struct step_row *row = steps; row->op != OP_COUNT; row++) {
        if (row->op == op && row->out == out && row->in[0] != GATED) {
            return row;
        }
    }
    CU_FAIL_FATAL("no such row");
    return NULL;
}

static bool faults(const struct step_row *row, const char *part)
{
    struct step_fault fault = plan_steps_check(&arch);
    return fault.reason != NULL && fault.row == row && strstr(fault.reason, part) != NULL;
}

static void the_tables_pass(void)
{
    CU_ASSERT_PTR_NULL(plan_steps_check(checkpoint.arch).reason);
}

static void weights_of_equal_size_are_told_apart(void)
{
    copy_layer();
    uint8_t *out_projection = row_of(OP_LINEAR_ADD, X)->weight;
    CU_ASSERT_EQUAL(checkpoint.dims[Q_OUT], checkpoint.dims[HIDDEN]); /* so numbers cannot see it */
    uint8_t right = out_projection[0];
    for (uint8_t slot = 1; slot < 40; slot++) { /* every other weight of the model */
        out_projection[0] = slot;
        CU_ASSERT(slot == right || plan_steps_check(&arch).reason != NULL);
    }
}

static void each_kind_of_mistake_is_found_at_its_row(void)
{
    struct step_row *row;
    copy_layer();
    row = row_of(OP_LINEAR, QKV);
    row->in[0] = X;
    CU_ASSERT(faults(row, "activation type"));
    copy_layer();
    row = row_of(OP_LINEAR, QKV);
    row->bias[0] = row->weight[0];
    CU_ASSERT(faults(row, "bias"));
    copy_layer();
    row = row_of(OP_LINEAR_ADD, X);
    row->in[0] = GATED; /* written later only */
    CU_ASSERT(plan_steps_check(&arch).row == row);
    copy_layer();
    row = row_of(OP_RMSNORM, NORMED);
    row->in[0] = ATTENDED;
    CU_ASSERT(faults(row, "float32"));
    copy_layer();
    row = row_of(OP_ROTARY, QK);
    row->in[1] = NO_BUFFER;
    CU_ASSERT(faults(row, "cosines and sines"));
    copy_layer();
    row = row_of(OP_KV_WRITE, NO_BUFFER);
    row->in[0] = Q;
    CU_ASSERT(faults(row, "keys and values"));
    copy_layer();
    row = row_of(OP_ATTENTION, ATTENDED);
    row->in[0] = K;
    CU_ASSERT(faults(row, "queries"));
    copy_layer();
    row = row_of(OP_LINEAR_SWIGLU, GATED);
    row->weight[1] = 0;
    CU_ASSERT(faults(row, "gate and up"));
    copy_layer();
    row = row_of(OP_RMSNORM, NORMED);
    row->in[0] = VX;
    CU_ASSERT(faults(row, "rows differ"));
    copy_layer();
    row = row_of(OP_LINEAR, QKV);
    row->weight[0] = 99;
    CU_ASSERT(faults(row, "no table"));
    copy_layer();
    row_of(OP_LINEAR, QKV)->op = OP_CONVERT;
    CU_ASSERT(plan_steps_check(&arch).reason != NULL);
}

static void what_was_not_written_is_not_read(void)
{
    copy_layer();
    struct step_row *row = row_of(OP_LINEAR, QKV);
    memmove(row, row + 1, (size_t)(steps + ROWS_MAX - 1 - row) * sizeof *row); /* nobody makes q, k, v */
    struct step_fault fault = plan_steps_check(&arch);
    CU_ASSERT(fault.reason != NULL && strstr(fault.reason, "written before") != NULL && fault.row->op == OP_ROTARY);
}

static uint64_t bytes_of(enum buffer buffer, const uint32_t *dims)
{
    const struct buffer_row *row = plan_steps_buffer(checkpoint.arch, buffer);
    uint64_t bytes = (uint64_t)dims[row->shape[0]] * dims[row->shape[1]] * (row->kind == ACT ? 2 : 4);
    return (bytes + 63) / 64 * 64;
}

static bool overlap(const struct step_plan *plan, const uint32_t *dims, enum buffer a, enum buffer b)
{
    return plan->offset[a] < plan->offset[b] + bytes_of(b, dims) &&
           plan->offset[b] < plan->offset[a] + bytes_of(a, dims);
}

static void fill_limits(uint32_t *dims)
{
    memcpy(dims, checkpoint.dims, DIM_COUNT * sizeof dims[0]);
    dims[TOKENS] = 8192;
    dims[LOGIT_ROWS] = 64;
    dims[PATCHES] = 65536;
    dims[TILE_ROWS] = 256;
    dims[TILE_GROUPS] = 64;
}

static void buffers_that_live_together_do_not_overlap(void)
{
    static const enum buffer pairs[][2] = {
        {X, NORMED},       {X, QKV},          {X, ATTENDED},        {X, GATED},    {X, PICKED},     {X, COS},
        {COS, SIN},        {COS, QKV},        {SIN, GATED},         {NORMED, QKV}, {QKV, ATTENDED}, {NORMED, GATED},
        {VCOS, VSIN},      {VCOS, VNORMED},   {VNORMED, VKV},       {VNORMED, VQ}, {VQ, VATTENDED}, {VNORMED, VGATED},
        {VNORMED, VMIXED}, {VMIXED, VACTIVE}, {VACTIVE, VFEATURES}, {VCOS, VKV},
    };
    uint32_t dims[DIM_COUNT];
    struct step_plan plan;
    fill_limits(dims);
    plan_steps_place(checkpoint.arch, dims, TYPE_BF16, &plan);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        CU_ASSERT_FALSE(overlap(&plan, dims, pairs[i][0], pairs[i][1]));
    }
    for (const struct buffer_row *row = checkpoint.arch->buffers; row->buffer != NO_BUFFER; row++) {
        bool is_text = row->shape[0] == TOKENS || row->shape[0] == LOGIT_ROWS;
        if (row->kind == ACT || row->kind == F32) {
            CU_ASSERT(plan.offset[row->buffer] % 64 == 0);
            CU_ASSERT(plan.offset[row->buffer] + bytes_of(row->buffer, dims) <=
                      (is_text ? plan.text_bytes : plan.tile_bytes));
        }
    }
}

static void memory_is_the_live_peak(void)
{
    uint32_t dims[DIM_COUNT];
    struct step_plan plan;
    fill_limits(dims);
    plan_steps_place(checkpoint.arch, dims, TYPE_BF16, &plan);
    /* The widest moment of a layer: the residual stream, the rotary tables, the normed rows and the gated half. */
    uint64_t peak =
        bytes_of(X, dims) + bytes_of(COS, dims) + bytes_of(SIN, dims) + bytes_of(NORMED, dims) + bytes_of(GATED, dims);
    CU_ASSERT_EQUAL(plan.text_bytes, peak);
    CU_ASSERT(plan.text_bytes + plan.tile_bytes < plan.unshared_bytes);
    CU_ASSERT_EQUAL(plan.state_bytes, bytes_of(VX, dims)); /* nothing else has a row for every patch */
    CU_ASSERT_EQUAL(plan.offset[VX], plan.tile_bytes);
}

static void without_vision_there_is_no_tile(void)
{
    uint32_t dims[DIM_COUNT];
    struct step_plan plan;
    fill_limits(dims);
    dims[PATCHES] = dims[TILE_ROWS] = dims[TILE_GROUPS] = 0;
    plan_steps_place(checkpoint.arch, dims, TYPE_F32, &plan);
    CU_ASSERT(plan.tile_bytes == 0 && plan.state_bytes == 0 && plan.text_bytes > 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(the_tables_pass),
        CASE(weights_of_equal_size_are_told_apart),
        CASE(each_kind_of_mistake_is_found_at_its_row),
        CASE(what_was_not_written_is_not_read),
        CASE(buffers_that_live_together_do_not_overlap),
        CASE(memory_is_the_live_peak),
        CASE(without_vision_there_is_no_tile),
        {NULL, NULL},
    };
    checkpoint_read(&checkpoint, &(struct checkpoint_source){.folder = "tests/data/models/Qwen2.5-VL-7B-Instruct"});
    return harness_run(argc, argv, "plan_steps", cases, NULL);
}
