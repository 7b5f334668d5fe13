/* kerncheck: every op of the table, at every level that this machine can run, against the oracle.
 *
 * A trial is one op with one set of shapes and operands, made from a seed. Checking it means, for each level: the
 * outputs (filled with NaN before) are within the table's tolerances of the oracle's; inputs and the guard bands around
 * every operand are unchanged; the same run again, other teams, and the rows cut into pieces give the same bits.
 */
#ifndef TESTS_KERNELS_KERNCHECK_H
#define TESTS_KERNELS_KERNCHECK_H

#include "kernels/op.h"

enum { TRIAL_OPERANDS = 16, TRIAL_POINTERS = 600 };

enum operand_role { OPERAND_IN, OPERAND_OUT, OPERAND_IN_OUT };

/* What an operand's elements are; OPERAND_BYTES are compared bit for bit only. */
enum operand_kind { OPERAND_F32, OPERAND_BF16, OPERAND_BYTES };

struct operand {
    const char *name;
    enum operand_role role;
    enum operand_kind kind;
    unsigned char *data;   /* with a guard band before and behind */
    unsigned char *before; /* what it held before the run */
    unsigned char *oracle; /* what ref made of it */
    unsigned char *result; /* what the level under test made of it at first */
    size_t bytes;
};

union op_args {
    struct embed_args embed;
    struct rmsnorm_args rmsnorm;
    struct linear_args linear, linear_add;
    struct linear_swiglu_args linear_swiglu;
    struct gelu_erf_args gelu_erf;
    struct convert_args convert;
    struct rotary_table_args rotary_table;
    struct rotary_args rotary;
    struct kv_write_args kv_write;
    struct attention_args attention;
    struct patchify_args patchify;
    struct scatter_rows_args scatter_rows;
};

struct trial {
    enum op op;
    union op_args args;
    uint32_t rows;
    enum kernel_type act; /* which of the table's tolerances holds */
    uint64_t random;      /* state of the generator */
    bool is_corner;       /* extreme values instead of ordinary ones */
    struct operand operands[TRIAL_OPERANDS];
    uint32_t operand_count;
    struct packed_matrix matrices[2];
    struct kv_store store;
    struct kv_sequence sequences[4];
    const void *pointers[TRIAL_POINTERS];
    char shape[160];     /* for the failure line */
    double flops, bytes; /* of one launch, for --bench */
};

/* Sizes of a trial: what the generator may use up; each op reads them in its own way. */
struct trial_size {
    uint32_t rows, width, other;
    enum kernel_type act;
};

/* ---- kerncheck_trial.c: memory, random operands ---- */

void trial_begin(struct trial *trial, enum op op, uint64_t seed); /* forgets all operands of the trial before */
uint32_t trial_random(struct trial *trial, uint32_t below);
void *trial_operand(struct trial *trial, const char *name, enum operand_role role, enum operand_kind kind,
                    size_t count);
void trial_fill(struct trial *trial, void *data, enum operand_kind kind, size_t count, float scale);
static inline enum operand_kind kind_of(enum kernel_type type)
{
    return type == TYPE_F32 ? OPERAND_F32 : OPERAND_BF16;
}

/* ---- kerncheck_ops.c: what each op's operands are ---- */

void trial_make(struct trial *trial, const struct trial_size *size);
/* The trial's args for rows first .. first + count - 1 only. */
void trial_take_rows(const struct trial *trial, union op_args *args, uint32_t first, uint32_t count);

/* ---- kerncheck_check.c ---- */

/* Checks one trial of an op at every level; prints a line for each failure, ending in the command that repeats it.
 * Returns the failures. */
int kerncheck_trial(enum op op, uint64_t seed);

/* Trials seed .. seed + count - 1 of an op. */
int kerncheck_op(enum op op, uint64_t seed, uint32_t count);

/* A team of threads that are made for each run. */
struct team *kerncheck_team(uint32_t worker_count);

/* ---- kerncheck_bench.c ---- */

void kerncheck_bench(const char *op, uint32_t worker_count);

#endif
