/* op: from the table's rows to a checked launch. */
#ifndef KERNELS_OP_H
#define KERNELS_OP_H

#include "kernels/kernels.h"
#include "kernels/team.h"

/* What computes. A higher level includes the lower ones: an op without a variant of its own takes the next lower. */
enum kernel_level {
    LEVEL_REF,        /* the oracle: plain C, sums in double */
    LEVEL_GENERIC,    /* plain C */
    LEVEL_AVX2,       /* AVX2, FMA, F16C */
    LEVEL_AVX512,     /* AVX-512 F, BW, VL, DQ */
    LEVEL_AVX512BF16, /* dot products of bf16 pairs */
    LEVEL_AMX,        /* the same, and products of bf16 tiles */
    LEVEL_COUNT,
};

/* Takes the fastest level that this machine can run. Once, at start, before any launch and before there are threads. */
void kernels_choose(void);

/* Takes `level`, if this machine can run it; false, and nothing changes, if it cannot. For tests, and for running a
 * whole model on the oracle. Not while an op runs. */
bool kernels_use(enum kernel_level level);

enum kernel_level kernels_level(void);
const char *kernels_level_name(enum kernel_level level); /* "avx512bf16" */

enum op {
#define OP(NAME, name, args, ...) OP_##NAME,
#include "kernels/op_table.h"
    OP_COUNT,
};

const char *op_name(enum op op);

/* Whether the op can run these shapes: NULL if it can, else the reason, a constant. Looks at dimensions, types and
 * strides; the only pointers that it follows are those to packed_matrix and kv_store, whose `data` may be NULL. So the
 * plan can ask before there is memory. `args` is the op's args struct. */
const char *op_check(enum op op, const void *args);

/* Bytes of workspace that op_launch needs for these shapes, rows up to args' rows, with up to worker_count workers;
 * a multiple of 64. Grows with rows and never with the data. */
size_t op_workspace_bytes(enum op op, const void *args, uint32_t worker_count);

/* Runs the op and returns when it is done. op_check's conditions hold (asserted); `workspace` is aligned to 64 and has
 * op_workspace_bytes bytes; its contents mean nothing before and after. */
void op_launch(enum op op, const void *args, struct team *team, void *workspace);

#endif
