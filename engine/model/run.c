/* run: opening a model over planned memory, and the text steps.
 *
 * Always true between calls: nothing here depends on an earlier step but the KV pages; what a step needs it finds in
 * its argument, in the weights and in those pages.
 */
#include "engine/model/run.h"

#include "engine/log.h"
#include "engine/model/bind.h"
#include "engine/model/run_state.h"
#include "engine/start.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static struct model the_model;

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) & ~UINT64_C(63);
}

/* ---- measuring ---- */

/* Lays the run-time tables out from `base` (NULL: count only); returns their bytes. */
static uint64_t place_tables(const struct model *model, unsigned char *base, struct step_tables *tables)
{
    const uint32_t *dims = model->dims;
    uint64_t rows = dims[TOKENS] > dims[TILE_ROWS] ? dims[TOKENS] : dims[TILE_ROWS];
    uint64_t groups = dims[PATCHES] > 0 ? dims[PATCHES] / dims[V_GROUP] : 0;
    const uint64_t bytes[] = {
        dims[TOKENS] * sizeof(int32_t),
        rows * sizeof(int32_t[3]),
        dims[TOKENS] * sizeof(void *),
        rows * sizeof(struct kv_row),
        model->limits.sequences_max * sizeof(struct kv_sequence),
        groups * sizeof(uint32_t),
        (groups + 1) * sizeof(uint32_t),
    };
    uint64_t at[sizeof bytes / sizeof bytes[0] + 1] = {0};

    for (uint32_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        at[i + 1] = at[i] + aligned(bytes[i]);
    }
    if (base != NULL) {
        *tables = (struct step_tables){
            .ids = (void *)(base + at[0]),
            .positions = (void *)(base + at[1]),
            .features = (void *)(base + at[2]),
            .places = (void *)(base + at[3]),
            .sequences = (void *)(base + at[4]),
            .order = (void *)(base + at[5]),
            .bounds = (void *)(base + at[6]),
        };
    }
    return at[sizeof bytes / sizeof bytes[0]];
}

static void set_dims(struct model *model)
{
    const struct model_limits *limits = &model->limits;
    uint32_t *dims = model->dims;

    memcpy(dims, model->checkpoint->dims, sizeof model->dims);
    dims[TOKENS] = limits->step_rows_max;
    dims[LOGIT_ROWS] = limits->logit_rows_max;
    if (model->checkpoint->has_vision && limits->patches_max > 0) {
        uint32_t group = dims[V_GROUP];
        assert(group > 0);
        assert(limits->tile_rows_max > 0 && limits->patches_max <= UINT32_MAX - group);
        dims[PATCHES] = (limits->patches_max + group - 1) / group * group;
        dims[TILE_ROWS] = (limits->tile_rows_max + group - 1) / group * group;
        dims[TILE_ROWS] = dims[TILE_ROWS] < dims[PATCHES] ? dims[TILE_ROWS] : dims[PATCHES];
        dims[TILE_GROUPS] = dims[TILE_ROWS] / group;
    }
}

static struct step_frame base_frame(const struct model *model, const struct head_dims *heads, double eps)
{
    struct step_frame frame = {
        .arch = model->checkpoint->arch,
        .dims = model->dims,
        .bank = &model->bank,
        .plan = &model->plan,
        .heads = heads,
        .act = model->act,
        .eps = (float)eps,
        .store = {.kv_heads = model->dims[heads->kv_heads],
                  .head_dim = model->dims[heads->head_dim],
                  .type = model->act},
    };

    frame.store.page_stride_bytes = kv_store_layer_bytes(frame.store.kv_heads, frame.store.head_dim, model->act);
    frame.rows[TOKENS] = model->dims[TOKENS];
    frame.rows[LOGIT_ROWS] = model->dims[LOGIT_ROWS];
    frame.rows[PATCHES] = frame.rows[TILE_ROWS] = model->dims[TILE_ROWS];
    frame.rows[TILE_GROUPS] = model->dims[TILE_GROUPS];
    return frame;
}

void run_measure_frames(struct model *model)
{
    const struct arch *arch = model->checkpoint->arch;

    model->text = base_frame(model, &arch->text_heads, model->checkpoint->rms_eps);
    model->text.store.page_stride_bytes *= model->dims[LAYERS];
    model->text.axis = model->text_axis;
    model->text.frequency = model->text_frequency;
    if (model->dims[PATCHES] > 0) {
        model->vision = base_frame(model, &arch->vision_heads, 1e-6); /* fixed in the published code */
        model->vision.grid_h = model->dims[V_MERGE]; /* some picture of PATCHES patches, for the ops' checks */
        model->vision.grid_w = model->dims[PATCHES] / model->dims[V_MERGE];
        model->vision.axis = model->vision_axis;
        model->vision.frequency = model->vision_frequency;
        model->vision.normalize = (const float(*)[256])model->normalize;
        model->vision.grid_h = model->dims[V_MERGE]; /* a picture of the most patches, for the ops' checks */
        model->vision.grid_w = model->dims[PATCHES] / model->dims[V_MERGE];
    }
}

/* Asks every op of a table whether it can run, and for its workspace. */
static uint64_t measure_table(const struct model *model, const struct step_frame *frame, const struct step_row *steps)
{
    uint64_t most = 0;
    struct step_call call;

    for (const struct step_row *row = steps; row->op != OP_COUNT; row++) {
        step_args_fill(frame, row, 0, &call);
        const char *reason = op_check(row->op, &call.args);
        if (reason != NULL) {
            start_refuse(START_BAD_MODEL, "config.json: the model's shapes do not fit op %s: %s", op_name(row->op),
                         reason);
        }
        uint64_t bytes = op_workspace_bytes(row->op, &call.args, model->limits.threads);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static uint64_t measure_workspace(const struct model *model)
{
    const struct arch *arch = model->checkpoint->arch;
    const struct step_row *const text[] = {arch->begin_steps, arch->layer_steps, arch->end_steps};
    const struct step_row *const tower[] = {arch->patch_steps, arch->keys_steps, arch->rest_steps, arch->merge_steps};
    uint64_t most = 64;

    for (uint32_t i = 0; i < 3; i++) {
        uint64_t bytes = measure_table(model, &model->text, text[i]);
        most = bytes > most ? bytes : most;
    }
    for (uint32_t i = 0; i < 4 && model->dims[PATCHES] > 0; i++) {
        uint64_t bytes = measure_table(model, &model->vision, tower[i]);
        most = bytes > most ? bytes : most;
    }
    return aligned(most);
}

/* Everything that follows from checkpoint and limits, without memory. */
static void measure(struct model *model, const struct checkpoint *checkpoint, const struct model_limits *limits)
{
    *model = (struct model){.checkpoint = checkpoint, .limits = *limits};
    model->act = limits->dtype == MODEL_F32 ? TYPE_F32 : TYPE_BF16;
    set_dims(model);
    weights_place(&model->bank, checkpoint, model->act);
    plan_steps_place(checkpoint->arch, model->dims, model->act, &model->plan);
    run_measure_frames(model);

    const uint32_t *dims = model->dims;
    uint64_t scratch = weights_scratch_bytes(checkpoint, limits->threads);
    uint64_t tables = place_tables(model, NULL, NULL);
    model->sizes = (struct model_sizes){
        .weights_bytes = model->bank.bytes,
        .kv_page_bytes = model->text.store.page_stride_bytes,
        .mm_page_bytes = aligned((uint64_t)MM_PAGE_TOKENS * dims[HIDDEN] * kernel_type_bytes(model->act)),
        .pixels_bytes = aligned((uint64_t)dims[PATCHES] * dims[V_PATCH] * dims[V_PATCH] * 3),
        .act_text_bytes = model->plan.text_bytes,
        .act_vision_bytes = model->plan.tile_bytes + model->plan.state_bytes + tower_store_bytes(model),
        .logits_bytes = aligned((uint64_t)dims[LOGIT_ROWS] * dims[VOCAB] * sizeof(float)),
        .step_tables_bytes = scratch > tables ? scratch : tables,
        .op_workspace_bytes = measure_workspace(model),
    };
}

void model_measure(const struct checkpoint *checkpoint, const struct model_limits *limits, struct model_sizes *sizes)
{
    assert(limits->step_rows_max > 0 && limits->logit_rows_max > 0 && limits->sequences_max > 0);
    assert(limits->threads > 0);
    measure(&the_model, checkpoint, limits);
    *sizes = the_model.sizes;
}

/* ---- opening ---- */

/* 1 / theta^(2j/dim), rounded as the reference rounds it. */
static void fill_frequencies(float *frequency, uint32_t count, double theta, uint32_t dim)
{
    for (uint32_t j = 0; j < count; j++) {
        float exponent = (float)(2 * j) / (float)dim;
        frequency[j] = 1.0F / (float)pow((double)(float)theta, (double)exponent);
    }
}

static void fill_text_rotary(struct model *model)
{
    const uint32_t *section = model->checkpoint->mrope_section;
    uint32_t half = model->dims[HALF_DIM];

    assert(half <= HEAD_DIM_MAX / 2 && section[0] + section[1] + section[2] == half);
    fill_frequencies(model->text_frequency, half, model->checkpoint->rope_theta, model->dims[HEAD_DIM]);
    for (uint32_t j = 0; j < half; j++) {
        model->text_axis[j] = j < section[0] ? 0 : j < section[0] + section[1] ? 1 : 2;
    }
}

struct model *model_open(const struct checkpoint *checkpoint, const struct model_limits *limits,
                         const struct model_memory *memory, struct team *team)
{
    struct model *model = &the_model;

    assert(team != NULL && team->worker_count == limits->threads);
    assert(memory->weights != NULL && memory->act_text != NULL && memory->kv_pages != NULL);
    assert(memory->step_tables != NULL && memory->op_workspace != NULL);
    measure(model, checkpoint, limits);
    model->memory = *memory;
    model->team = team;
    model->bank.base = memory->weights;
    model->text.memory = memory->act_text;
    fill_text_rotary(model);
    if (model->dims[PATCHES] > 0) {
        assert(memory->act_vision != NULL);
        fill_frequencies(model->vision_frequency, model->dims[V_HALF_DIM] / 2, checkpoint->vision_rope_theta,
                         model->dims[V_HALF_DIM]);
        tower_open(model);
    }
    (void)place_tables(model, memory->step_tables, &model->tables);
    return model;
}

void model_load(struct model *model, enum load_format format)
{
    assert(model == &the_model && model->bank.base != NULL);
    weights_load(&model->bank, format, model->memory.step_tables, model->sizes.step_tables_bytes, model->team);
}

void model_set_probe(struct model *model, model_probe *probe, void *ctx)
{
    model->probe = probe;
    model->probe_ctx = ctx;
}

/* ---- steps ---- */

/* The norm before the head reads only the rows that are asked for: one launch for each run of neighbours. */
static void launch_picked(struct model *model, const struct step_call *call, const uint32_t *picked,
                          uint32_t picked_count)
{
    struct rmsnorm_args args = call->args.rmsnorm;
    uint32_t done = 0;

    assert(picked != NULL);
    while (done < picked_count) {
        uint32_t run = 1;
        while (done + run < picked_count && picked[done + run] == picked[done] + run) {
            run++;
        }
        args.in = call->args.rmsnorm.in + (size_t)picked[done] * args.width;
        args.out =
            (unsigned char *)call->args.rmsnorm.out + (size_t)done * args.width * kernel_type_bytes(args.out_type);
        args.rows = run;
        op_launch(OP_RMSNORM, &args, model->team, model->memory.op_workspace);
        done += run;
    }
}

static bool is_picking(const struct step_frame *frame, const struct step_row *row)
{
    return row->op == OP_RMSNORM && plan_steps_buffer(frame->arch, row->out)->shape[0] == LOGIT_ROWS;
}

void run_steps(struct model *model, struct step_frame *frame, const struct step_row *steps, uint32_t layer,
               const uint32_t *picked)
{
    struct step_call call;

    for (const struct step_row *row = steps; row->op != OP_COUNT; row++) {
        step_args_fill(frame, row, layer, &call);
        if (is_picking(frame, row)) {
            launch_picked(model, &call, picked, frame->rows[LOGIT_ROWS]);
        } else {
            op_launch(row->op, &call.args, model->team, model->memory.op_workspace);
        }
        if (model->probe != NULL && row->out != NO_BUFFER) {
            uint32_t row_count = frame->rows[plan_steps_buffer(frame->arch, row->out)->shape[0]];
            model->probe(model->probe_ctx, (int)row->out, layer, step_args_address(frame, row->out), row_count);
        }
    }
}

/* Copies a step's rows into the ops' form. */
static void fill_rows(struct model *model, const struct text_step *step)
{
    struct step_tables *tables = &model->tables;
    bool has_features = false;

    for (uint32_t i = 0; i < step->sequence_count; i++) {
        tables->sequences[i] = (struct kv_sequence){step->sequences[i].pages, step->sequences[i].page_count};
    }
    for (uint32_t i = 0; i < step->row_count; i++) {
        const struct text_row *row = &step->rows[i];
        assert(row->sequence < step->sequence_count);
        assert(row->index / KV_PAGE_TOKENS < step->sequences[row->sequence].page_count);
        assert(row->feature != NULL || (row->token >= 0 && (uint32_t)row->token < model->dims[VOCAB]));
        tables->ids[i] = row->token;
        memcpy(tables->positions[i], row->position, sizeof row->position);
        tables->features[i] = row->feature;
        tables->places[i] = (struct kv_row){row->sequence, row->index, 0, row->index + 1};
        has_features = has_features || row->feature != NULL;
    }
    model->text.ids = tables->ids;
    model->text.positions = (const int32_t(*)[3])tables->positions;
    model->text.features = has_features ? tables->features : NULL;
    model->text.places = tables->places;
    model->text.sequences = tables->sequences;
}

void model_text_step(struct model *model, const struct text_step *step, float *logits)
{
    const struct arch *arch = model->checkpoint->arch;
    struct step_frame *frame = &model->text;
    size_t layer_bytes = frame->store.page_stride_bytes / model->dims[LAYERS];

    assert(step->row_count > 0 && step->row_count <= model->dims[TOKENS]);
    assert(step->logit_row_count <= model->dims[LOGIT_ROWS] && step->sequence_count <= model->limits.sequences_max);
    assert(logits != NULL || step->logit_row_count == 0);
    fill_rows(model, step);
    frame->logits = logits;
    frame->rows[TOKENS] = step->row_count;
    frame->rows[LOGIT_ROWS] = step->logit_row_count;

    run_steps(model, frame, arch->begin_steps, 0, NULL);
    for (uint32_t layer = 0; layer < model->dims[LAYERS]; layer++) {
        frame->store.data = (unsigned char *)model->memory.kv_pages + layer * layer_bytes;
        run_steps(model, frame, arch->layer_steps, layer, NULL);
    }
    if (step->logit_row_count > 0) {
        run_steps(model, frame, arch->end_steps, 0, step->logit_rows);
    }
}
