/* Every op, one row each. Data only, so no include guard: define OP, include, done.
 *
 *     OP(NAME, name, args, max_f32, mean_f32, max_bf16, mean_bf16)
 *
 * NAME gives OP_NAME; name gives op_check_name, op_workspace_name, ref_name and cpu_name, and the files ref/ and cpu/ name.
 * An implementation may differ from ref by at most max (any element) and mean (all elements of one output together),
 * both in units of that output's root mean square; the columns are for an act type of f32 and bf16. The mean bound is
 * the one that a bias cannot hide from. 0: equal bits.
 */
OP(EMBED, embed, embed_args, 0, 0, 0, 0)
OP(RMSNORM, rmsnorm, rmsnorm_args, 4e-6, 1e-7, 4e-2, 1e-3)
OP(LINEAR, linear, linear_args, 2e-5, 1e-6, 4e-2, 1e-3)
OP(LINEAR_ADD, linear_add, linear_args, 2e-5, 1e-6, 4e-3, 1e-4)
OP(LINEAR_SWIGLU, linear_swiglu, linear_swiglu_args, 4e-5, 1e-6, 4e-2, 1e-3)
OP(GELU_ERF, gelu_erf, gelu_erf_args, 4e-6, 1e-7, 4e-2, 1e-3)
OP(CONVERT, convert, convert_args, 0, 0, 0, 0)
OP(ROTARY_TABLE, rotary_table, rotary_table_args, 1e-6, 1e-7, 1e-6, 1e-7)
OP(ROTARY, rotary, rotary_args, 2e-6, 1e-7, 2e-6, 1e-7)
OP(KV_WRITE, kv_write, kv_write_args, 0, 0, 0, 0)
OP(ATTENTION, attention, attention_args, 4e-5, 2e-6, 5e-2, 2e-3)
OP(PATCHIFY, patchify, patchify_args, 0, 0, 0, 0)
OP(SCATTER_ROWS, scatter_rows, scatter_rows_args, 0, 0, 0, 0)
#undef OP
