/* kerncheck_trial: a trial's operands: random values between guard bands, in memory that is used again for each trial.
 */
#include "tests/kernels/kerncheck.h"

#include "kernels/bf16.h"
#include "tests/harness.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { GUARD_BYTES = 256 };

#define ARENA_BYTES ((size_t)1 << 31)

static unsigned char *arena;
static size_t arena_used;

void trial_begin(struct trial *trial, enum op op, uint64_t seed)
{
    if (arena == NULL) {
        arena = harness_memory(ARENA_BYTES);
    }
    arena_used = 0;
    memset(trial, 0, sizeof *trial);
    trial->op = op;
    trial->random = seed * 0x9e3779b97f4a7c15u + op;
}

/* splitmix64. */
static uint64_t next_random(struct trial *trial)
{
    uint64_t z = trial->random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t trial_random(struct trial *trial, uint32_t below)
{
    return (uint32_t)((next_random(trial) >> 32) * below >> 32);
}

/* About normal: a sum of uniform values. */
static float random_value(struct trial *trial)
{
    uint64_t bits = next_random(trial);
    int32_t sum = 0;

    for (int i = 0; i < 4; i++) {
        sum += (int32_t)(bits >> (16 * i) & 0xffff) - 0x8000;
    }
    return (float)sum * (1.7320508f / 65536);
}

/* Values that break things: zeros of both signs, denormals, large and tiny ones, ties between two bf16. */
static float corner_value(struct trial *trial)
{
    static const float extremes[] = {0.0f,   -0.0f, 1e-40f, -1e-39f, 3e4f,      -3e4f,
                                     1e-20f, 1.0f,  -1.0f,  0.5f,    0x1.01p0f, -0x1.03p3f};
    enum { EXTREMES = sizeof extremes / sizeof *extremes };
    uint32_t pick = trial_random(trial, 40);

    return pick < EXTREMES ? extremes[pick] : random_value(trial);
}

void trial_fill(struct trial *trial, void *data, enum operand_kind kind, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++) {
        float value = scale * (trial->is_corner ? corner_value(trial) : random_value(trial));
        if (kind == OPERAND_F32) {
            ((float *)data)[i] = value;
        } else if (kind == OPERAND_BF16) {
            ((uint16_t *)data)[i] = bf16_narrow(value);
        } else {
            ((unsigned char *)data)[i] = (unsigned char)next_random(trial);
        }
    }
}

/* bytes rounded up so that what follows is aligned to 64 again. */
static unsigned char *take(size_t bytes)
{
    unsigned char *memory = arena + arena_used;

    arena_used += (bytes + 63) / 64 * 64;
    assert(arena_used <= ARENA_BYTES);
    return memory;
}

void *trial_operand(struct trial *trial, const char *name, enum operand_role role, enum operand_kind kind, size_t count)
{
    size_t element_bytes = kind == OPERAND_F32 ? 4 : kind == OPERAND_BF16 ? 2 : 1, bytes = count * element_bytes;
    struct operand *operand = &trial->operands[trial->operand_count++];

    assert(trial->operand_count <= TRIAL_OPERANDS);
    *operand = (struct operand){.name = name, .role = role, .kind = kind, .bytes = bytes};
    memset(take(GUARD_BYTES), 0xC3, GUARD_BYTES);
    operand->data = take(bytes + GUARD_BYTES);
    memset(operand->data + bytes, 0xC3, GUARD_BYTES);
    operand->before = take(bytes);
    operand->oracle = take(bytes);
    operand->result = take(bytes);
    if (role == OPERAND_OUT) {
        memset(operand->data, 0xff, bytes); /* NaN, as bf16 and as f32 */
    } else if (kind != OPERAND_BYTES) {
        trial_fill(trial, operand->data, kind, count, 1);
    }
    return operand->data;
}
