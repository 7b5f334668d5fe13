/* test_op: every op of the table against the oracle, at every level of this machine; what launches refuse; levels. */
#include "kernels/op.h"

#include "tests/harness.h"
#include "tests/kernels/kerncheck.h"

#include <string.h>

enum { TRIALS = 48 };

#define OP(NAME, name, ...)                                                                                            \
    static void name##_agrees_with_the_oracle_in_any_company(void)                                                     \
    {                                                                                                                  \
        CU_ASSERT_EQUAL(kerncheck_op(OP_##NAME, 1, TRIALS), 0);                                                        \
    }
#include "kernels/op_table.h"

static void the_best_level_of_the_machine_is_chosen(void)
{
    kernels_choose();
    enum kernel_level best = kernels_level();

    for (enum kernel_level level = best + 1; level < LEVEL_COUNT; level++) {
        CU_ASSERT_FALSE(kernels_use(level));
        CU_ASSERT_EQUAL(kernels_level(), best);
    }
    CU_ASSERT_TRUE(kernels_use(LEVEL_REF));
    CU_ASSERT_STRING_EQUAL(kernels_level_name(kernels_level()), "ref");
    CU_ASSERT_TRUE(kernels_use(best));
}

static struct packed_matrix matrix = {.out = 16, .in = 7, .type = TYPE_BF16};
static const struct linear_args odd_inputs = {
    .weight = &matrix, .rows = 1, .in_stride = 7, .out_stride = 16, .out_type = TYPE_F32};

static void launch_with_odd_inputs(void)
{
    op_launch(OP_LINEAR, &odd_inputs, &team_serial, NULL);
}

static void what_a_check_refuses_a_launch_asserts(void)
{
    CU_ASSERT_STRING_EQUAL(op_check(OP_LINEAR, &odd_inputs), "an odd number of inputs in bf16");
    CU_ASSERT_TRUE(harness_aborts(launch_with_odd_inputs));
}

static void shapes_are_checked_before_there_is_memory(void)
{
    struct kv_store store = {.page_stride_bytes = 1 << 16, .kv_heads = 4, .head_dim = 128, .type = TYPE_BF16};
    struct attention_args args = {.store = &store, .rows = 1, .heads = 28, .q_stride = 28 * 128, .q_type = TYPE_F32};

    CU_ASSERT_PTR_NULL(op_check(OP_ATTENTION, &args));
    args.heads = 30;
    CU_ASSERT_PTR_NOT_NULL(op_check(OP_ATTENTION, &args));
    args.heads = 28;
    store.head_dim = HEAD_DIM_MAX + 2;
    CU_ASSERT_PTR_NOT_NULL(op_check(OP_ATTENTION, &args));
}

static void workspace_grows_with_workers_alone(void)
{
    struct packed_matrix weight = {.out = 4096, .in = 1024, .type = TYPE_BF16};
    struct linear_args args = {
        .weight = &weight, .rows = 1, .in_stride = 1024, .out_stride = 4096, .out_type = TYPE_F32};
    size_t one = op_workspace_bytes(OP_LINEAR, &args, 1);

    CU_ASSERT_EQUAL(op_workspace_bytes(OP_LINEAR, &args, 3), 3 * one);
    args.rows = 100000;
    CU_ASSERT_EQUAL(op_workspace_bytes(OP_LINEAR, &args, 1), one);
    CU_ASSERT_EQUAL(one % 64, 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
#define OP(NAME, name, ...) CASE(name##_agrees_with_the_oracle_in_any_company),
#include "kernels/op_table.h"
        CASE(the_best_level_of_the_machine_is_chosen),
        CASE(what_a_check_refuses_a_launch_asserts),
        CASE(shapes_are_checked_before_there_is_memory),
        CASE(workspace_grows_with_workers_alone),
        {NULL, NULL},
    };

    kernels_choose();
    return harness_run(argc, argv, "op", cases, NULL);
}
