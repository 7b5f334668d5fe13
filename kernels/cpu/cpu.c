/* cpu: which inner kernels this machine can run, and the cutting of row-wise ops.
 *
 * Always true after start: cpu_kernels points at a level that the machine can run, and does not change while an op
 * runs.
 */
#include "kernels/cpu/cpu.h"

#include <assert.h>
#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct cpu_kernels *cpu_kernels = &cpu_kernels_generic;

/* AMX: the processor has it, and the system lets this process (all its threads to come) use the tile registers. */
static bool may_use_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    const unsigned bits = 1u << 22 | 1u << 24; /* AMX-BF16, AMX-TILE */
    unsigned a = 0, b = 0, c = 0, d = 0;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bits) == bits &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

bool cpu_kernels_are_worth(enum kernel_level level)
{
    /* Intel's pair products (Sapphire Rapids, measured) run at half the rate of two fused multiply-adds on widened
     * weights; AMD's run at the full rate. */
    return level != LEVEL_AVX512BF16 || __builtin_cpu_is("amd");
}

const struct cpu_kernels *cpu_kernels_for(enum kernel_level level)
{
    switch (level) {
    case LEVEL_REF:
    case LEVEL_GENERIC:
        return &cpu_kernels_generic;
    case LEVEL_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &cpu_kernels_avx2 : NULL;
    case LEVEL_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
                   ? &cpu_kernels_avx512
                   : NULL;
    case LEVEL_AVX512BF16:
        return cpu_kernels_for(LEVEL_AVX512) != NULL && __builtin_cpu_supports("avx512bf16") ? &cpu_kernels_avx512bf16
                                                                                             : NULL;
    case LEVEL_AMX:
        return cpu_kernels_for(LEVEL_AVX512BF16) != NULL && may_use_tiles() ? &cpu_kernels_amx : NULL;
    case LEVEL_COUNT:
        break;
    }
    return NULL;
}

void cpu_to_dot(void *out, enum kernel_type type, const void *in, enum kernel_type in_type, uint32_t width)
{
    size_t dot_bytes = cpu_dot_bytes(type);
    uint16_t rounded[HEAD_DIM_MAX];

    assert(type == TYPE_BF16 || in_type == TYPE_F32);
    if (in_type == TYPE_F32 && type == TYPE_BF16 && dot_bytes == 4) {
        assert(width <= HEAD_DIM_MAX);
        cpu_kernels->narrow(rounded, in, width);
        cpu_kernels->widen(out, rounded, width);
    } else if (in_type == TYPE_BF16 && dot_bytes == 4) {
        cpu_kernels->widen(out, in, width);
    } else if (in_type == TYPE_F32 && dot_bytes == 2) {
        cpu_kernels->narrow(out, in, width);
    } else {
        memcpy(out, in, width * dot_bytes);
    }
}

struct rows_job {
    cpu_rows_function *rows;
    const void *args;
    uint32_t row_count, tile_rows;
};

static void rows_tile(void *ctx, uint32_t tile_index, uint32_t worker_index)
{
    const struct rows_job *job = ctx;
    uint32_t first = tile_index * job->tile_rows, left = job->row_count - first;

    (void)worker_index;
    job->rows(job->args, first, first + (left < job->tile_rows ? left : job->tile_rows));
}

void cpu_rows(struct team *team, cpu_rows_function *rows, const void *args, uint32_t row_count, uint64_t row_work)
{
    enum { TILE_WORK = 32 * 1024 }; /* elements: tens of microseconds, against a few to wake a thread */
    uint64_t per_tile = row_work < TILE_WORK ? TILE_WORK / (row_work > 0 ? row_work : 1) : 1;

    if (row_count <= per_tile || team->worker_count == 1) {
        rows(args, 0, row_count);
        return;
    }
    struct rows_job job = {rows, args, row_count, (uint32_t)per_tile};
    team->run(team, rows_tile, &job, (row_count + job.tile_rows - 1) / job.tile_rows);
}

void cpu_tiles(struct team *team, team_tile *tile, void *ctx, uint32_t tile_count, uint64_t work)
{
    enum { ALONE_WORK = 512 * 1024 }; /* a megabyte of weights: some thirty microseconds from the caches */

    if (work > ALONE_WORK) {
        team->run(team, tile, ctx, tile_count);
        return;
    }
    for (uint32_t i = 0; i < tile_count; i++) {
        tile(ctx, i, 0);
    }
}

size_t no_workspace(const void *args, uint32_t worker_count)
{
    (void)args;
    (void)worker_count;
    return 0;
}
