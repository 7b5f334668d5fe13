/* kerncheck_check: what holds for every op, level and trial. Knows ops only through the table and the trial. */
#include "tests/kernels/kerncheck.h"

#include "kernels/bf16.h"
#include "tests/harness.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { GUARD_BYTES = 256, WORKERS_MAX = 8 };

struct tolerance {
    double max, mean;
};

static const struct tolerance tolerances[OP_COUNT][2] = {
#define OP(NAME, name, args, workspace, max_f32, mean_f32, max_bf16, mean_bf16)                                        \
    {{max_f32, mean_f32}, {max_bf16, mean_bf16}},
#include "kernels/op_table.h"
};

/* ---- teams ---- */

/* A team whose tiles run in a scrambled order under scrambled worker numbers, on one thread. */
static void run_scrambled(struct team *team, team_tile *tile, void *ctx, uint32_t tile_count)
{
    for (uint32_t i = 0; i < tile_count; i++) {
        tile(ctx, tile_count - 1 - i, i * 7 % team->worker_count);
    }
}

struct threads_job {
    team_tile *tile;
    void *ctx;
    uint32_t tile_count;
    uint32_t next;
};

struct thread_start {
    struct threads_job *job;
    uint32_t worker_index;
};

static void *work(void *argument)
{
    struct thread_start *start = argument;
    uint32_t tile;

    while ((tile = __atomic_fetch_add(&start->job->next, 1, __ATOMIC_RELAXED)) < start->job->tile_count) {
        start->job->tile(start->job->ctx, tile, start->worker_index);
    }
    return NULL;
}

static void run_on_threads(struct team *team, team_tile *tile, void *ctx, uint32_t tile_count)
{
    struct threads_job job = {tile, ctx, tile_count, 0};
    struct thread_start starts[WORKERS_MAX];
    pthread_t threads[WORKERS_MAX];

    for (uint32_t i = 0; i < team->worker_count; i++) {
        starts[i] = (struct thread_start){&job, i};
        if (i > 0) {
            int status = pthread_create(&threads[i], NULL, work, &starts[i]);
            assert(status == 0);
            (void)status;
        }
    }
    work(&starts[0]);
    for (uint32_t i = 1; i < team->worker_count; i++) {
        pthread_join(threads[i], NULL);
    }
}

struct team *kerncheck_team(uint32_t worker_count)
{
    static struct team team = {.run = run_on_threads};

    assert(worker_count >= 1 && worker_count <= WORKERS_MAX);
    team.worker_count = worker_count;
    return &team;
}

/* ---- one run ---- */

static unsigned char *workspace_for(const struct trial *trial, uint32_t worker_count)
{
    static unsigned char *workspace;
    const size_t capacity = (size_t)64 << 20;

    if (workspace == NULL) {
        workspace = harness_memory(capacity);
    }
    size_t bytes = op_workspace_bytes(trial->op, &trial->args, worker_count);
    assert(bytes + GUARD_BYTES <= capacity);
    memset(workspace, 0xff, bytes);
    memset(workspace + bytes, 0xC3, GUARD_BYTES);
    return workspace;
}

static bool is_filled(const unsigned char *bytes, size_t count, unsigned char value)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return true;
}

static void restore(struct trial *trial)
{
    for (uint32_t i = 0; i < trial->operand_count; i++) {
        memcpy(trial->operands[i].data, trial->operands[i].before, trial->operands[i].bytes);
    }
}

/* Runs rows first .. first+count-1. Returns what was overrun, or NULL. */
static const char *run(struct trial *trial, uint32_t first, uint32_t count, struct team *team)
{
    unsigned char *workspace = workspace_for(trial, team->worker_count);
    union op_args args = trial->args;

    if (first > 0 || count < trial->rows) {
        trial_take_rows(trial, &args, first, count);
    }
    op_launch(trial->op, &args, team, workspace);
    for (uint32_t i = 0; i < trial->operand_count; i++) {
        const struct operand *operand = &trial->operands[i];
        if (!is_filled(operand->data - GUARD_BYTES, GUARD_BYTES, 0xC3) ||
            !is_filled(operand->data + operand->bytes, GUARD_BYTES, 0xC3)) {
            return operand->name;
        }
    }
    size_t bytes = op_workspace_bytes(trial->op, &trial->args, team->worker_count);
    return is_filled(workspace + bytes, GUARD_BYTES, 0xC3) ? NULL : "workspace";
}

/* ---- comparisons ---- */

static int report(const struct trial *trial, uint64_t seed, const char *what, const char *operand, double value)
{
    printf("%s at %s, %s: %s %s (%g); repeat with: kerncheck --op %s --seed %llu\n", op_name(trial->op),
           kernels_level_name(kernels_level()), trial->shape, operand, what, value, op_name(trial->op),
           (unsigned long long)seed);
    return 1;
}

static double element(const void *data, enum operand_kind kind, size_t i)
{
    return kind == OPERAND_F32 ? (double)((const float *)data)[i] : (double)bf16_widen(((const uint16_t *)data)[i]);
}

/* Within the tolerances of the table; a bf16 output may be rounded the other way, besides. */
static int compare_with_oracle(const struct trial *trial, const struct operand *operand, uint64_t seed)
{
    struct tolerance allowed = tolerances[trial->op][trial->act == TYPE_BF16];
    size_t count = operand->bytes / (operand->kind == OPERAND_F32 ? 4 : 2);
    double squares = 0, worst = 0, sum = 0, rounding = operand->kind == OPERAND_BF16 ? 0x1p-7 : 0x1p-22;

    if (operand->kind == OPERAND_BYTES || (allowed.max <= 0 && allowed.mean <= 0)) {
        return memcmp(operand->data, operand->oracle, operand->bytes) == 0
                   ? 0
                   : report(trial, seed, "differs from the oracle", operand->name, 0);
    }
    for (size_t i = 0; i < count; i++) {
        double value = element(operand->oracle, operand->kind, i);
        squares += isnan(value) ? 0 : value * value;
    }
    double unit = sqrt(squares / (double)(count > 0 ? count : 1)) + 1e-30;
    for (size_t i = 0; i < count; i++) {
        double want = element(operand->oracle, operand->kind, i), got = element(operand->data, operand->kind, i);
        if (isnan(want) && isnan(got)) {
            continue; /* padding of a stride: nobody writes it */
        }
        double excess = fabs(got - want) - rounding * fabs(want);
        sum += got - want;
        if (!(excess <= allowed.max * unit)) { /* NaN too */
            return report(trial, seed, "is too far from the oracle", operand->name, fabs(got - want) / unit);
        }
        worst = fmax(worst, excess / unit);
    }
    double mean = fabs(sum) / (double)(count > 0 ? count : 1) / unit;
    double noise = 4 * (allowed.max / 4 + rounding) / sqrt((double)(count > 0 ? count : 1));
    return mean <= allowed.mean + noise ? 0 : report(trial, seed, "has a bias", operand->name, mean);
}

static int compare_inputs(const struct trial *trial, uint64_t seed)
{
    int failures = 0;

    for (uint32_t i = 0; i < trial->operand_count; i++) {
        const struct operand *operand = &trial->operands[i];
        if (operand->role == OPERAND_IN && memcmp(operand->data, operand->before, operand->bytes) != 0) {
            failures += report(trial, seed, "was changed", operand->name, 0);
        }
    }
    return failures;
}

static int compare_with_result(const struct trial *trial, uint64_t seed, const char *what)
{
    for (uint32_t i = 0; i < trial->operand_count; i++) {
        const struct operand *operand = &trial->operands[i];
        if (memcmp(operand->data, operand->result, operand->bytes) != 0) {
            size_t at = 0;
            while (operand->data[at] == operand->result[at]) {
                at++;
            }
            return report(trial, seed, what, operand->name, (double)at);
        }
    }
    return 0;
}

/* ---- the properties ---- */

static int run_and_compare(struct trial *trial, uint64_t seed, struct team *team, const char *what)
{
    restore(trial);
    const char *overrun = run(trial, 0, trial->rows, team);

    return overrun != NULL ? report(trial, seed, "was overrun", overrun, 0) : compare_with_result(trial, seed, what);
}

/* The rows in pieces of `piece` (0: of any size): the same bits. */
static int run_pieces(struct trial *trial, uint64_t seed, uint32_t piece)
{
    uint32_t next = 0;

    restore(trial);
    while (next < trial->rows) {
        uint32_t left = trial->rows - next, count = piece > 0 ? piece : 1 + trial_random(trial, left);
        count = count < left ? count : left;
        const char *overrun = run(trial, next, count, &team_serial);
        if (overrun != NULL) {
            return report(trial, seed, "was overrun by a piece", overrun, piece);
        }
        next += count;
    }
    return compare_with_result(trial, seed, "depends on the company of its rows");
}

static int check_level(struct trial *trial, uint64_t seed)
{
    struct team scrambled = {.worker_count = 3, .run = run_scrambled};
    int failures = 0;

    restore(trial);
    const char *overrun = run(trial, 0, trial->rows, &team_serial);
    if (overrun != NULL) {
        return report(trial, seed, "was overrun", overrun, 0);
    }
    failures += compare_inputs(trial, seed);
    for (uint32_t i = 0; i < trial->operand_count; i++) {
        struct operand *operand = &trial->operands[i];
        failures += operand->role == OPERAND_IN ? 0 : compare_with_oracle(trial, operand, seed);
        memcpy(operand->result, operand->data, operand->bytes);
    }
    failures += run_and_compare(trial, seed, &team_serial, "differs when repeated");
    failures += run_and_compare(trial, seed, &scrambled, "depends on the order of tiles");
    failures += run_and_compare(trial, seed, kerncheck_team(2), "depends on threads");
    failures += run_pieces(trial, seed, 1);
    failures += run_pieces(trial, seed, 5);
    failures += run_pieces(trial, seed, 0);
    return failures;
}

/* Edge sizes first, by the seed's own digits, then random ones. */
static struct trial_size size_of(struct trial *trial, uint64_t seed)
{
    static const uint32_t rows[] = {1, 2, 5, 6, 7, 16, 23, 24, 25, 95, 96, 97, 3, 17, 64, 0};
    static const uint32_t widths[] = {16, 2, 18, 64, 62, 66, 512, 510, 514, 48, 1026, 100, 34, 128, 80, 72};
    static const uint32_t many_rows[] = {255, 256, 257, 300, 515}, few_inputs[] = {2, 34, 64};

    if (seed % 11 == 10) { /* more than a tile holds */
        return (struct trial_size){
            .rows = many_rows[trial_random(trial, 5)],
            .width = few_inputs[trial_random(trial, 3)],
            .other = 10 + trial_random(trial, 2) + 12 * trial_random(trial, 80),
            .act = seed % 2 == 0 ? TYPE_BF16 : TYPE_F32,
        };
    }
    return (struct trial_size){
        .rows = seed % 5 == 4 ? 1 + trial_random(trial, 120) : rows[seed % 16],
        .width = seed % 5 == 3 ? 2 * (1 + trial_random(trial, 300)) : widths[seed / 2 % 16],
        .other = trial_random(trial, 1000),
        .act = seed % 2 == 0 ? TYPE_BF16 : TYPE_F32,
    };
}

int kerncheck_trial(enum op op, uint64_t seed)
{
    static struct trial trial;
    enum kernel_level level_before = kernels_level();
    int failures = 0;

    trial_begin(&trial, op, seed);
    trial.is_corner = seed % 7 == 6;
    struct trial_size size = size_of(&trial, seed);
    trial.rows = size.rows;
    trial.act = size.act;
    trial_make(&trial, &size);
    assert(op_check(op, &trial.args) == NULL);
    for (uint32_t i = 0; i < trial.operand_count; i++) {
        memcpy(trial.operands[i].before, trial.operands[i].data, trial.operands[i].bytes);
    }
    kernels_use(LEVEL_REF);
    run(&trial, 0, trial.rows, &team_serial);
    for (uint32_t i = 0; i < trial.operand_count; i++) {
        memcpy(trial.operands[i].oracle, trial.operands[i].data, trial.operands[i].bytes);
    }
    for (enum kernel_level level = LEVEL_GENERIC; level < LEVEL_COUNT; level++) {
        if (kernels_use(level)) {
            failures += check_level(&trial, seed);
        }
    }
    kernels_use(level_before);
    return failures;
}

int kerncheck_op(enum op op, uint64_t seed, uint32_t count)
{
    int failures = 0;

    for (uint32_t i = 0; i < count; i++) {
        failures += kerncheck_trial(op, seed + i);
    }
    return failures;
}
