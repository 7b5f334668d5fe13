/* implementations: the functions that op_table.h names, for op.c. */
#ifndef KERNELS_IMPLEMENTATIONS_H
#define KERNELS_IMPLEMENTATIONS_H

#include "kernels/op.h"

/* `args` is the op's args struct, checked. */
typedef void ref_function(const void *args);
typedef void cpu_function(const void *args, struct team *team, void *workspace);
typedef size_t workspace_function(const void *args, uint32_t worker_count);

#define OP(NAME, name, ...)                                                                                            \
    ref_function ref_##name;                                                                                           \
    cpu_function cpu_##name;
#include "kernels/op_table.h"

/* Bytes that the CPU implementations need; the same at every level, so that a plan holds on another machine. */
workspace_function no_workspace, linear_workspace, attention_workspace;

#endif
