/* plan_steps: the step tables, checked on symbols, and the buffers' places.
 *
 * Always true of a plan: two buffers overlap only if no step needs both. A buffer that crosses the edge of the layers'
 * loop is alive in all of it.
 */
#include "engine/model/plan_steps.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

_Static_assert(BUFFER_COUNT <= 64, "a set of buffers is a 64-bit mask");

enum { STEPS_MAX = 64 }; /* rows of the text tables together, or of one tower table */

const struct buffer_row *plan_steps_buffer(const struct arch *arch, enum buffer buffer)
{
    assert(arch->buffers != NULL && buffer < BUFFER_COUNT);
    for (const struct buffer_row *row = arch->buffers; row->buffer != NO_BUFFER; row++) {
        if (row->buffer == buffer) {
            return row;
        }
    }
    return NULL;
}

enum buffer plan_steps_holder(const struct arch *arch, enum buffer buffer)
{
    const struct buffer_row *row = plan_steps_buffer(arch, buffer);

    assert(row != NULL);
    return row->kind == VIEW ? row->view_of : buffer;
}

/* ---- the rules ---- */

/* What a check of one row looks at. */
struct rule {
    const struct arch *arch;
    const struct step_row *row;
    const struct buffer_row *out, *in[2]; /* NULL where the step has none */
    const struct weight_row *weight[2], *bias[2];
    const struct head_dims *heads;
};

static const struct weight_row *find_weight(const struct arch *arch, uint8_t slot)
{
    for (const struct weight_row *row = arch->weights; slot != 0 && row->slot != 0; row++) {
        if (row->slot == slot) {
            return row;
        }
    }
    return NULL;
}

static bool is_f32(const struct rule *rule, const struct buffer_row *buffer)
{
    const struct buffer_row *holder = plan_steps_buffer(rule->arch, plan_steps_holder(rule->arch, buffer->buffer));

    return holder != NULL && holder->kind != ACT;
}

/* Rows agree when they are the same symbol; a tile is a part of the patches; picked rows come from all. */
static bool rows_agree(enum dim out, enum dim in)
{
    return out == in || (out == PATCHES && in == TILE_ROWS) || (out == TILE_ROWS && in == PATCHES);
}

static const char *check_rmsnorm(const struct rule *rule)
{
    if (rule->out == NULL || rule->in[0] == NULL || rule->weight[0] == NULL) {
        return "a norm has an output, an input and a weight";
    }
    if (!rows_agree(rule->out->shape[0], rule->in[0]->shape[0]) &&
        !(rule->out->shape[0] == LOGIT_ROWS && rule->in[0]->shape[0] == TOKENS)) {
        return "a norm's rows differ";
    }
    if (!is_f32(rule, rule->in[0])) {
        return "a norm's input is float32";
    }
    if (rule->weight[0]->in != NO_DIM || rule->weight[0]->out != rule->in[0]->shape[1] ||
        rule->out->shape[1] != rule->in[0]->shape[1]) {
        return "a norm's widths differ";
    }
    return NULL;
}

static const char *check_linear(const struct rule *rule)
{
    bool is_add = rule->row->op == OP_LINEAR_ADD;

    if (rule->out == NULL || rule->in[0] == NULL || rule->weight[0] == NULL || rule->weight[0]->in == NO_DIM) {
        return "a linear has an output, an input and a matrix";
    }
    if (!rows_agree(rule->out->shape[0], rule->in[0]->shape[0])) {
        return "a linear's rows differ";
    }
    if (rule->in[0]->shape[1] != rule->weight[0]->in) {
        return "a linear's input is not as wide as its matrix";
    }
    if (rule->out->shape[1] != rule->weight[0]->out) {
        return "a linear's output is not as wide as its matrix";
    }
    if (is_f32(rule, rule->in[0]) || (is_add && !is_f32(rule, rule->out))) {
        return "a linear's input is of the activation type, a sum is float32";
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (rule->bias[i] != NULL && (rule->bias[i]->in != NO_DIM || rule->bias[i]->out != rule->weight[0]->out)) {
            return "a bias is not as long as its matrix is high";
        }
    }
    return NULL;
}

static const char *check_swiglu(const struct rule *rule)
{
    const char *reason = check_linear(rule);

    if (reason != NULL) {
        return reason;
    }
    if (rule->weight[1] == NULL || rule->weight[1]->in != rule->weight[0]->in ||
        rule->weight[1]->out != rule->weight[0]->out) {
        return "gate and up differ in shape";
    }
    return is_f32(rule, rule->out) ? "a gated output is of the activation type" : NULL;
}

static const char *check_gelu(const struct rule *rule)
{
    if (rule->out == NULL || rule->in[0] == NULL || rule->out->shape[0] != rule->in[0]->shape[0] ||
        rule->out->shape[1] != rule->in[0]->shape[1] || !is_f32(rule, rule->in[0])) {
        return "a GELU's input is float32 and of its output's shape";
    }
    return NULL;
}

static const char *check_rotary(const struct rule *rule)
{
    const struct buffer_row *cos = rule->row->op == OP_ROTARY ? rule->in[0] : rule->out;
    const struct buffer_row *sin = rule->row->op == OP_ROTARY ? rule->in[1] : rule->in[0];

    if (rule->out == NULL || cos == NULL || sin == NULL) {
        return "a rotary has cosines and sines";
    }
    if (cos->shape[1] != rule->heads->half_dim || sin->shape[1] != rule->heads->half_dim || !is_f32(rule, cos) ||
        !is_f32(rule, sin)) {
        return "cosines and sines are float32, half a head wide";
    }
    if (!rows_agree(rule->out->shape[0], cos->shape[0]) || cos->shape[0] != sin->shape[0] || !is_f32(rule, rule->out)) {
        return "a rotary's rows differ, or what it rotates is not float32";
    }
    return NULL;
}

static const char *check_kv_write(const struct rule *rule)
{
    if (rule->in[0] == NULL || rule->in[1] == NULL || rule->in[0]->shape[0] != rule->in[1]->shape[0] ||
        rule->in[0]->shape[1] != rule->heads->kv_out || rule->in[1]->shape[1] != rule->heads->kv_out ||
        !is_f32(rule, rule->in[0]) || !is_f32(rule, rule->in[1])) {
        return "keys and values are float32, as wide as the key heads";
    }
    return NULL;
}

static const char *check_attention(const struct rule *rule)
{
    if (rule->out == NULL || rule->in[0] == NULL || rule->out->shape[0] != rule->in[0]->shape[0] ||
        rule->in[0]->shape[1] != rule->heads->q_out || rule->out->shape[1] != rule->heads->q_out ||
        !is_f32(rule, rule->in[0]) || is_f32(rule, rule->out)) {
        return "queries are float32, the output of the activation type, both as wide as the heads";
    }
    return NULL;
}

static const char *check_embed(const struct rule *rule)
{
    if (rule->out == NULL || rule->weight[0] == NULL || rule->weight[0]->in != rule->out->shape[1] ||
        !is_f32(rule, rule->out)) {
        return "an embedding's output is float32 and as wide as its table";
    }
    return NULL;
}

static const char *check_patchify(const struct rule *rule)
{
    return rule->out == NULL || rule->out->shape[1] != V_PATCH_IN || is_f32(rule, rule->out)
               ? "patch rows are of the activation type, a patch's pixels wide"
               : NULL;
}

static const char *check_scatter(const struct rule *rule)
{
    return rule->in[0] == NULL || rule->in[0]->shape[0] != TILE_GROUPS || rule->in[0]->shape[1] != V_OUT ||
                   is_f32(rule, rule->in[0])
               ? "features are of the activation type, a merged token a row"
               : NULL;
}

static const char *check_row(const struct rule *rule)
{
    assert(rule->arch != NULL && rule->heads != NULL);
    assert(rule->row->op != OP_COUNT);
    switch (rule->row->op) {
    case OP_EMBED:
        return check_embed(rule);
    case OP_RMSNORM:
        return check_rmsnorm(rule);
    case OP_LINEAR:
    case OP_LINEAR_ADD:
        return check_linear(rule);
    case OP_LINEAR_SWIGLU:
        return check_swiglu(rule);
    case OP_GELU_ERF:
        return check_gelu(rule);
    case OP_ROTARY_TABLE:
    case OP_ROTARY:
        return check_rotary(rule);
    case OP_KV_WRITE:
        return check_kv_write(rule);
    case OP_ATTENTION:
        return check_attention(rule);
    case OP_PATCHIFY:
        return check_patchify(rule);
    case OP_SCATTER_ROWS:
        return check_scatter(rule);
    case OP_CONVERT:
    case OP_COUNT:
        break;
    }
    return "an op that no table uses";
}

/* ---- reads and writes ---- */

static uint64_t bit(const struct arch *arch, enum buffer buffer)
{
    return buffer == NO_BUFFER ? 0 : UINT64_C(1) << plan_steps_holder(arch, buffer);
}

static uint64_t written_by(const struct arch *arch, const struct step_row *row)
{
    uint64_t out = bit(arch, row->out);

    return row->op == OP_ROTARY_TABLE ? out | bit(arch, row->in[0]) : out;
}

static uint64_t read_by(const struct arch *arch, const struct step_row *row)
{
    uint64_t in = row->op == OP_ROTARY_TABLE ? 0 : bit(arch, row->in[0]) | bit(arch, row->in[1]);

    return row->op == OP_ROTARY || row->op == OP_LINEAR_ADD ? in | bit(arch, row->out) : in;
}

static struct step_fault check_table(const struct arch *arch, const struct step_row *steps,
                                     const struct head_dims *heads, uint64_t *written)
{
    for (const struct step_row *row = steps; row->op != OP_COUNT; row++) {
        struct rule rule = {.arch = arch, .row = row, .heads = heads};
        for (uint32_t i = 0; i < 2; i++) {
            rule.in[i] = plan_steps_buffer(arch, row->in[i]);
            rule.weight[i] = find_weight(arch, row->weight[i]);
            rule.bias[i] = find_weight(arch, row->bias[i]);
            if ((row->in[i] != NO_BUFFER && rule.in[i] == NULL) || (row->weight[i] != 0 && rule.weight[i] == NULL) ||
                (row->bias[i] != 0 && rule.bias[i] == NULL)) {
                return (struct step_fault){"a step names a buffer or weight that no table has", row};
            }
        }
        rule.out = plan_steps_buffer(arch, row->out);
        if (row->out != NO_BUFFER && rule.out == NULL) {
            return (struct step_fault){"a step names a buffer that no table has", row};
        }
        const char *reason = check_row(&rule);
        if (reason != NULL) {
            return (struct step_fault){reason, row};
        }
        if ((read_by(arch, row) & ~*written) != 0) {
            return (struct step_fault){"a step reads a buffer that was not written before", row};
        }
        *written |= written_by(arch, row);
    }
    return (struct step_fault){NULL, NULL};
}

static uint64_t state_buffers(const struct arch *arch)
{
    uint64_t set = 0;

    for (const struct buffer_row *row = arch->buffers; row->buffer != NO_BUFFER; row++) {
        set |= row->kind == STATE ? UINT64_C(1) << row->buffer : 0;
    }
    return set;
}

struct step_fault plan_steps_check(const struct arch *arch)
{
    const struct step_row *const text[] = {arch->begin_steps, arch->layer_steps, arch->end_steps};
    const struct step_row *const tower[] = {arch->patch_steps, arch->keys_steps, arch->rest_steps, arch->merge_steps};
    struct step_fault fault = {NULL, NULL};
    uint64_t written = 0;

    for (uint32_t i = 0; i < 3 && fault.reason == NULL; i++) {
        fault = check_table(arch, text[i], &arch->text_heads, &written);
    }
    for (uint32_t i = 0; i < 4 && fault.reason == NULL && tower[i] != NULL; i++) {
        uint64_t of_unit = i == 0 ? 0 : state_buffers(arch); /* a unit finds nothing but the state */
        fault = check_table(arch, tower[i], &arch->vision_heads, &of_unit);
    }
    return fault;
}

/* ---- lifetimes and places ---- */

/* Steps that run one after another; [loop_first, loop_end) is repeated. */
struct sequence {
    const struct step_row *steps[STEPS_MAX];
    uint32_t count, loop_first, loop_end;
};

static void append(struct sequence *sequence, const struct step_row *steps)
{
    for (const struct step_row *row = steps; row->op != OP_COUNT; row++) {
        assert(sequence->count < STEPS_MAX);
        sequence->steps[sequence->count++] = row;
    }
}

/* Adds to overlap[b] the set of buffers that are alive together with b. */
static void find_overlaps(const struct arch *arch, const struct sequence *sequence, uint64_t *overlap)
{
    uint32_t first[BUFFER_COUNT], last[BUFFER_COUNT];

    assert(sequence->count > 0);
    assert(sequence->loop_first <= sequence->loop_end && sequence->loop_end <= sequence->count);
    for (uint32_t b = 0; b < BUFFER_COUNT; b++) {
        first[b] = UINT32_MAX;
        last[b] = 0;
        for (uint32_t i = 0; i < sequence->count; i++) {
            uint64_t used = written_by(arch, sequence->steps[i]) | read_by(arch, sequence->steps[i]);
            if ((used >> b & 1) != 0) {
                first[b] = first[b] == UINT32_MAX ? i : first[b];
                last[b] = i;
            }
        }
        bool touches_loop = first[b] < sequence->loop_end && last[b] >= sequence->loop_first;
        if (touches_loop && (first[b] < sequence->loop_first || last[b] >= sequence->loop_end)) {
            first[b] = first[b] < sequence->loop_first ? first[b] : sequence->loop_first;
            last[b] = last[b] >= sequence->loop_end ? last[b] : sequence->loop_end - 1;
        }
    }
    for (uint32_t a = 1; a < BUFFER_COUNT; a++) {
        for (uint32_t b = 1; b < BUFFER_COUNT; b++) {
            if (first[a] != UINT32_MAX && first[b] != UINT32_MAX && first[a] <= last[b] && first[b] <= last[a]) {
                overlap[a] |= UINT64_C(1) << b;
            }
        }
    }
}

static uint64_t buffer_bytes(const struct buffer_row *row, const uint32_t *dims, enum kernel_type act)
{
    uint64_t bytes = row->kind == ACT ? kernel_type_bytes(act) : sizeof(float);
    bool is_over = __builtin_mul_overflow(bytes, (uint64_t)dims[row->shape[0]], &bytes);

    is_over = __builtin_mul_overflow(bytes, (uint64_t)dims[row->shape[1]], &bytes) || is_over;
    assert(!is_over && bytes < UINT64_MAX / 2);
    return (bytes + 63) & ~UINT64_C(63);
}

/* Places the buffers of `set`, the largest first, each as low as those that it overlaps in time allow. */
static uint64_t place_set(const struct arch *arch, const uint32_t *dims, enum kernel_type act, uint64_t set,
                          const uint64_t *overlap, uint64_t *offset)
{
    uint64_t bytes[BUFFER_COUNT] = {0}, placed = 0, peak = 0;

    for (const struct buffer_row *row = arch->buffers; row->buffer != NO_BUFFER; row++) {
        bytes[row->buffer] = buffer_bytes(row, dims, act);
    }
    while (placed != set) {
        uint32_t next = 0;
        for (uint32_t b = 1; b < BUFFER_COUNT; b++) {
            if (((set & ~placed) >> b & 1) != 0 && (next == 0 || bytes[b] > bytes[next])) {
                next = b;
            }
        }
        uint64_t at = 0;
        bool has_moved = true;
        while (has_moved) { /* ends: `at` only grows, past one neighbour's end each time */
            has_moved = false;
            for (uint32_t b = 1; b < BUFFER_COUNT; b++) {
                bool is_neighbour = (placed & overlap[next]) >> b & 1;
                if (is_neighbour && at < offset[b] + bytes[b] && offset[b] < at + bytes[next]) {
                    at = offset[b] + bytes[b];
                    has_moved = true;
                }
            }
        }
        assert(next != 0 && at % 64 == 0);
        offset[next] = at;
        placed |= UINT64_C(1) << next;
        peak = at + bytes[next] > peak ? at + bytes[next] : peak;
    }
    return peak;
}

/* The ACT and F32 buffers that the steps use. */
static uint64_t used_set(const struct arch *arch, const struct sequence *sequence)
{
    uint64_t set = 0, owned = 0;

    for (const struct buffer_row *row = arch->buffers; row->buffer != NO_BUFFER; row++) {
        owned |= row->kind == ACT || row->kind == F32 ? UINT64_C(1) << row->buffer : 0;
    }
    for (uint32_t i = 0; i < sequence->count; i++) {
        set |= written_by(arch, sequence->steps[i]) | read_by(arch, sequence->steps[i]);
    }
    return set & owned;
}

static void check_views(const struct arch *arch, const uint32_t *dims)
{
    for (const struct buffer_row *row = arch->buffers; row->buffer != NO_BUFFER; row++) {
        if (row->kind != VIEW) {
            continue;
        }
        const struct buffer_row *holder = plan_steps_buffer(arch, row->view_of);
        assert(holder != NULL && holder->kind != VIEW);
        if (row->shape[0] == holder->shape[0]) {
            assert(dims[row->at] + dims[row->shape[1]] <= dims[holder->shape[1]]);
        } else {
            assert((uint64_t)dims[row->shape[0]] * dims[row->shape[1]] ==
                   (uint64_t)dims[holder->shape[0]] * dims[holder->shape[1]]);
        }
    }
}

void plan_steps_place(const struct arch *arch, const uint32_t *dims, enum kernel_type act, struct step_plan *plan)
{
    const struct step_row *const tower[] = {arch->patch_steps, arch->keys_steps, arch->rest_steps, arch->merge_steps};
    struct sequence text = {.count = 0};
    uint64_t overlap[BUFFER_COUNT] = {0}, tower_set = 0;

    assert(plan_steps_check(arch).reason == NULL);
    check_views(arch, dims);
    *plan = (struct step_plan){.text_bytes = 0};
    append(&text, arch->begin_steps);
    text.loop_first = text.count;
    append(&text, arch->layer_steps);
    text.loop_end = text.count;
    append(&text, arch->end_steps);
    find_overlaps(arch, &text, overlap);
    plan->text_bytes = place_set(arch, dims, act, used_set(arch, &text), overlap, plan->offset);

    for (uint32_t i = 0; i < 4 && dims[PATCHES] > 0; i++) {
        struct sequence unit = {.count = 0};
        append(&unit, tower[i]);
        find_overlaps(arch, &unit, overlap);
        tower_set |= used_set(arch, &unit);
    }
    plan->tile_bytes = place_set(arch, dims, act, tower_set, overlap, plan->offset);
    for (const struct buffer_row *row = arch->buffers; row->buffer != NO_BUFFER; row++) {
        if (row->kind == STATE) {
            plan->offset[row->buffer] = plan->tile_bytes + plan->state_bytes;
            plan->state_bytes += buffer_bytes(row, dims, act);
        } else if (row->kind == ACT || row->kind == F32) {
            plan->unshared_bytes += buffer_bytes(row, dims, act);
        }
    }
}
