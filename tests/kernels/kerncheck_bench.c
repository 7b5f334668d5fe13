/* kerncheck_bench: what the ops reach, beside what the machine can do at most (measured in the same run). */
#include "tests/kernels/kerncheck.h"

#include "tests/harness.h"

#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* One thread is timed by the time that it had a core for (the machine is shared); several by the wall's. */
static clockid_t clock_in_use = CLOCK_PROCESS_CPUTIME_ID;

static double seconds(void)
{
    struct timespec now;

    clock_gettime(clock_in_use, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- the machine's peaks ---- */

enum { CHAINS = 16, PEAK_STEPS = 2000000 };

__attribute__((target("avx2,fma"))) static double spin_avx2(void)
{
    __m256 acc[8], one = _mm256_set1_ps(1);
    float out[8];

    for (int c = 0; c < 8; c++) {
        acc[c] = _mm256_setzero_ps();
    }
    for (int i = 0; i < PEAK_STEPS; i++) {
        acc[0] = _mm256_fmadd_ps(one, one, acc[0]);
        acc[1] = _mm256_fmadd_ps(one, one, acc[1]);
        acc[2] = _mm256_fmadd_ps(one, one, acc[2]);
        acc[3] = _mm256_fmadd_ps(one, one, acc[3]);
        acc[4] = _mm256_fmadd_ps(one, one, acc[4]);
        acc[5] = _mm256_fmadd_ps(one, one, acc[5]);
        acc[6] = _mm256_fmadd_ps(one, one, acc[6]);
        acc[7] = _mm256_fmadd_ps(one, one, acc[7]);
        __asm__ volatile("" : "+x"(acc[0]), "+x"(acc[1]), "+x"(acc[2]), "+x"(acc[3]));
    }
    for (int c = 1; c < 8; c++) {
        acc[0] = _mm256_add_ps(acc[0], acc[c]);
    }
    _mm256_storeu_ps(out, acc[0]);
    return out[0] > 0 ? 8.0 * 8 * 2 * PEAK_STEPS : 0;
}

/* Sixteen independent sums of `product` in registers; the lanes of one count `flops`. */
#define SPIN_512(function, instructions, flops, product)                                                               \
    __attribute__((target(instructions))) static double function(void)                                                 \
    {                                                                                                                  \
        __m512 s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, sa, sb;                                                         \
        const __m512 one = _mm512_set1_ps(1);                                                                          \
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = sa = sb = one;                                               \
        for (int i = 0; i < PEAK_STEPS; i++) {                                                                         \
            s0 = product(s0), s1 = product(s1), s2 = product(s2);                                                      \
            s3 = product(s3), s4 = product(s4), s5 = product(s5);                                                      \
            s6 = product(s6), s7 = product(s7), s8 = product(s8);                                                      \
            s9 = product(s9), sa = product(sa), sb = product(sb);                                                      \
            __asm__ volatile("" : "+v"(s0), "+v"(s1), "+v"(s2), "+v"(s3));                                             \
            __asm__ volatile("" : "+v"(s4), "+v"(s5), "+v"(s6), "+v"(s7));                                             \
            __asm__ volatile("" : "+v"(s8), "+v"(s9), "+v"(sa), "+v"(sb));                                             \
        }                                                                                                              \
        s0 = _mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3));                                              \
        s4 = _mm512_add_ps(_mm512_add_ps(s4, s5), _mm512_add_ps(s6, s7));                                              \
        s8 = _mm512_add_ps(_mm512_add_ps(s8, s9), _mm512_add_ps(sa, sb));                                              \
        s0 = _mm512_add_ps(_mm512_add_ps(s0, s4), s8);                                                                 \
        return _mm512_reduce_add_ps(s0) > 0 ? 12.0 * (flops)*PEAK_STEPS : 0;                                           \
    }

#define FMA_512(sum)  _mm512_fmadd_ps(one, one, sum)
#define PAIR_512(sum) _mm512_dpbf16_ps(sum, (__m512bh)one, (__m512bh)one)
SPIN_512(spin_avx512, "avx512f", 32, FMA_512)
SPIN_512(spin_avx512bf16, "avx512f,avx512bf16", 64, PAIR_512)

/* Four sums of 16 x 16 that take turns. It lets go of the tiles, so it runs before any op of its level. */
__attribute__((target("amx-tile,amx-bf16"))) static double spin_amx(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16}};
    const volatile void *seen = &config;

    _tile_loadconfig((const void *)(uintptr_t)seen);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    for (int i = 0; i < PEAK_STEPS / 4; i++) {
        _tile_dpbf16ps(0, 4, 5);
        _tile_dpbf16ps(1, 4, 5);
        _tile_dpbf16ps(2, 4, 5);
        _tile_dpbf16ps(3, 4, 5);
    }
    _tile_release();
    return 16.0 * 16 * 64 * PEAK_STEPS;
}

struct spin_job {
    double (*spin)(void);
    double flops[8];
};

static void spin_tile(void *ctx, uint32_t tile_index, uint32_t worker_index)
{
    struct spin_job *job = ctx;

    (void)worker_index;
    job->flops[tile_index] = job->spin();
}

static double peak_flops(struct team *team, double (*spin)(void))
{
    struct spin_job job = {.spin = spin};
    double best = 0;

    for (int i = 0; i < 3; i++) {
        double start = seconds(), flops = 0;
        team->run(team, spin_tile, &job, team->worker_count);
        for (uint32_t w = 0; w < team->worker_count; w++) {
            flops += job.flops[w];
        }
        best = fmax(best, flops / (seconds() - start));
    }
    return best;
}

enum { READ_BYTES = 512 << 20, READ_TILE_BYTES = 1 << 20 };

static unsigned char *read_memory;

__attribute__((target("avx2"))) static void read_tile(void *ctx, uint32_t tile_index, uint32_t worker_index)
{
    const __m256i *vectors = (const __m256i *)(const void *)(read_memory + (size_t)tile_index * READ_TILE_BYTES);
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    uint64_t *sink = ctx;

    for (size_t i = 0; i < READ_TILE_BYTES / sizeof *vectors; i += 4) {
        a = _mm256_add_epi64(a, _mm256_loadu_si256(vectors + i));
        b = _mm256_add_epi64(b, _mm256_loadu_si256(vectors + i + 1));
        c = _mm256_add_epi64(c, _mm256_loadu_si256(vectors + i + 2));
        d = _mm256_add_epi64(d, _mm256_loadu_si256(vectors + i + 3));
    }
    a = _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d));
    sink[worker_index * 8] += (uint64_t)_mm256_extract_epi64(a, 0);
}

static double peak_bytes(struct team *team)
{
    static uint64_t sink[64];
    double best = 0;

    if (read_memory == NULL) {
        read_memory = harness_memory(READ_BYTES);
        memset(read_memory, 1, READ_BYTES);
    }
    for (int i = 0; i < 3; i++) {
        double start = seconds();
        team->run(team, read_tile, sink, READ_BYTES / READ_TILE_BYTES);
        best = fmax(best, READ_BYTES / (seconds() - start));
    }
    return best;
}

/* The peak of the level's best multiplication: of bf16 pairs, or of floats. */
static double peak_of(struct team *team, enum kernel_level level, enum kernel_type type)
{
    if (level == LEVEL_AMX && type == TYPE_BF16) {
        return peak_flops(team, spin_amx);
    }
    if (level == LEVEL_AVX512BF16 && type == TYPE_BF16) {
        return peak_flops(team, spin_avx512bf16);
    }
    if (level >= LEVEL_AVX512) {
        return peak_flops(team, spin_avx512);
    }
    return level >= LEVEL_AVX2 ? peak_flops(team, spin_avx2) : 0;
}

/* ---- ops ---- */

struct bench {
    enum op op;
    const char *what;
    enum kernel_type type;
    union op_args args;
    double flops, bytes; /* of one launch */
};

static void run_bench(const struct bench *bench, struct team *team, double peak)
{
    static unsigned char *workspace;
    double best = 1e9, start = seconds();

    if (workspace == NULL) {
        workspace = harness_memory((size_t)64 << 20);
    }
    for (int i = 0; i < 20 && (i < 2 || seconds() - start < 1.0); i++) {
        double begin = seconds();
        op_launch(bench->op, &bench->args, team, workspace);
        best = fmin(best, seconds() - begin);
    }
    printf("%-11s %-14s %-4s %-40s %9.3f ms %8.1f GFLOP/s", kernels_level_name(kernels_level()), op_name(bench->op),
           bench->type == TYPE_BF16 ? "bf16" : "f32", bench->what, best * 1e3, bench->flops / best * 1e-9);
    if (peak > 0) {
        printf(" (%3.0f%%)", 100 * bench->flops / best / peak);
    }
    printf(" %7.1f GB/s\n", bench->bytes / best * 1e-9);
}

/* One shape of linear: `copies` weights one after the other, so that none stays in the cache. */
static void bench_linear(struct team *team, uint32_t rows, uint32_t in, uint32_t out, enum kernel_type type,
                         double peak)
{
    static struct trial trial;
    char what[64];

    trial_begin(&trial, OP_LINEAR, 1);
    trial.act = type;
    struct packed_matrix *weight = &trial.matrices[0];
    size_t element_bytes = kernel_type_bytes(type);
    enum operand_kind kind = kind_of(type);
    *weight = (struct packed_matrix){.out = out, .in = in, .type = type};
    weight->data =
        trial_operand(&trial, "weight", OPERAND_IN, kind, packed_matrix_bytes(out, in, type) / element_bytes);
    snprintf(what, sizeof what, "rows %u, %u -> %u", rows, in, out);
    struct bench bench = {
        .op = OP_LINEAR,
        .what = what,
        .type = type,
        .flops = 2.0 * rows * in * out,
        .bytes = (double)packed_matrix_bytes(out, in, type) + rows * (in + out) * (double)element_bytes,
        .args.linear = {.out = trial_operand(&trial, "out", OPERAND_OUT, OPERAND_F32, (size_t)rows * out),
                        .in = trial_operand(&trial, "in", OPERAND_IN, kind, (size_t)rows * in),
                        .weight = weight,
                        .rows = rows,
                        .in_stride = in,
                        .out_stride = out,
                        .out_type = TYPE_F32},
    };
    run_bench(&bench, team, peak);
}

/* rows query rows of one sequence at its end, or each of its whole window, against `keys` keys. */
static void bench_attention(struct team *team, uint32_t rows, uint32_t keys, uint32_t heads, uint32_t kv_heads,
                            uint32_t dim, bool is_causal, double peak)
{
    static struct trial trial;
    char what[64];
    uint32_t pages = (keys + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
    double seen = 0;

    trial_begin(&trial, OP_ATTENTION, 1);
    trial.store = (struct kv_store){.kv_heads = kv_heads, .head_dim = dim, .type = TYPE_BF16};
    trial.store.page_stride_bytes = kv_store_layer_bytes(kv_heads, dim, TYPE_BF16);
    trial.store.data =
        trial_operand(&trial, "pages", OPERAND_IN, OPERAND_BF16, pages * trial.store.page_stride_bytes / 2);
    trial.sequences[0] = (struct kv_sequence){NULL, pages};
    struct kv_row *places = trial_operand(&trial, "places", OPERAND_OUT, OPERAND_BYTES, rows * sizeof *places);
    for (uint32_t r = 0; r < rows; r++) {
        places[r] = (struct kv_row){0, 0, 0, is_causal ? keys - rows + r + 1 : keys};
        seen += places[r].key_end;
    }
    snprintf(what, sizeof what, "rows %u, keys %u, heads %u/%u of %u", rows, keys, heads, kv_heads, dim);
    size_t width = (size_t)heads * dim;
    struct bench bench = {
        .op = OP_ATTENTION,
        .what = what,
        .type = TYPE_BF16,
        .flops = 4 * seen * heads * dim,
        .bytes = (double)pages * (double)trial.store.page_stride_bytes,
        .args.attention = {.out = trial_operand(&trial, "out", OPERAND_OUT, OPERAND_BF16, rows * width),
                           .q = trial_operand(&trial, "q", OPERAND_IN, OPERAND_F32, rows * width),
                           .store = &trial.store,
                           .places = places,
                           .sequences = trial.sequences,
                           .rows = rows,
                           .heads = heads,
                           .q_stride = (uint32_t)width,
                           .q_type = TYPE_F32,
                           .scale = 1 / sqrtf((float)dim)},
    };
    run_bench(&bench, team, peak);
}

static bool is_chosen(const char *choice, enum op op)
{
    return choice == NULL || strcmp(choice, op_name(op)) == 0;
}

void kerncheck_bench(const char *op, uint32_t worker_count)
{
    struct team *team = kerncheck_team(worker_count);

    clock_in_use = worker_count > 1 ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    printf("%u threads; reading memory: %.1f GB/s\n", worker_count, peak_bytes(team) * 1e-9);
    for (enum kernel_level level = LEVEL_AVX2; level < LEVEL_COUNT; level++) {
        if (!kernels_use(level)) {
            continue;
        }
        double peak_bf16 = peak_of(team, level, TYPE_BF16), peak_f32 = peak_of(team, level, TYPE_F32);
        printf("%s: at most %.1f GFLOP/s in bf16, %.1f in f32\n", kernels_level_name(level), peak_bf16 * 1e-9,
               peak_f32 * 1e-9);
        if (is_chosen(op, OP_LINEAR)) {
            bench_linear(team, 512, 2048, 2048, TYPE_BF16, peak_bf16);
            bench_linear(team, 512, 3420, 1280, TYPE_BF16, peak_bf16);
            bench_linear(team, 512, 2048, 2048, TYPE_F32, peak_f32);
            bench_linear(team, 1, 2048, 65536, TYPE_BF16, 0);
            bench_linear(team, 1, 11008, 2048, TYPE_BF16, 0);
            bench_linear(team, 8, 2048, 32768, TYPE_BF16, 0);
        }
        if (is_chosen(op, OP_ATTENTION)) {
            bench_attention(team, 512, 2048, 16, 2, 128, true, peak_bf16);
            bench_attention(team, 1, 8192, 16, 2, 128, true, 0);
            bench_attention(team, 256, 2691 * 4, 16, 16, 80, false, peak_bf16);
        }
    }
}
