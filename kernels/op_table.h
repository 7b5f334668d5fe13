/* Every op, one row each. Data only, so no include guard: define OP, include, done.
 *
 *     OP(NAME, name, args, workspace, max_f32, mean_f32, max_bf16, mean_bf16)
 *
 * NAME gives OP_NAME; name gives the functions check_name, ref_name and cpu_name and the files ref/name.c and
 * cpu/name.c; args is a struct of kernels.h, workspace the function that says how much of it the op needs (cpu.h). An
 * implementation may differ from ref by at most max (any element) and mean (all elements of one output together), both
 * in units of that output's root mean square, and besides by one rounding of the element to its type; the columns are
 * for an act type of f32 and bf16. The mean bound is the one that a bias cannot hide from. 0: equal bits.
 */
OP(EMBED, embed, embed_args, no_workspace, 0, 0, 0, 0)
OP(RMSNORM, rmsnorm, rmsnorm_args, no_workspace, 4e-6, 1e-7, 4e-6, 1e-7)
OP(LINEAR, linear, linear_args, linear_workspace, 2e-5, 1e-6, 2e-5, 1e-6)
OP(LINEAR_ADD, linear_add, linear_args, linear_workspace, 2e-5, 1e-6, 2e-5, 1e-6)
OP(LINEAR_SWIGLU, linear_swiglu, linear_swiglu_args, linear_workspace, 4e-5, 1e-6, 4e-5, 1e-6)
OP(GELU_ERF, gelu_erf, gelu_erf_args, no_workspace, 4e-6, 1e-7, 4e-6, 1e-7)
OP(CONVERT, convert, convert_args, no_workspace, 0, 0, 0, 0)
OP(ROTARY_TABLE, rotary_table, rotary_table_args, no_workspace, 1e-6, 1e-7, 1e-6, 1e-7)
OP(ROTARY, rotary, rotary_args, no_workspace, 2e-6, 1e-7, 2e-6, 1e-7)
OP(KV_WRITE, kv_write, kv_write_args, no_workspace, 0, 0, 0, 0)
OP(ATTENTION, attention, attention_args, attention_workspace, 1e-4, 2e-6, 3e-2, 1e-3)
OP(PATCHIFY, patchify, patchify_args, no_workspace, 0, 0, 0, 0)
OP(SCATTER_ROWS, scatter_rows, scatter_rows_args, no_workspace, 0, 0, 0, 0)
#undef OP
