/* attention: online softmax over pages of keys, several rows of one sequence against each block of keys.
 *
 * A line is one row and one query head; a tile is some neighbouring rows and one key head, so its lines share K and V.
 * The tile falls into runs: rows of one sequence whose keys begin at the same place. For each block of ATTENTION_KEYS
 * keys, counted from the page where they begin, a run computes scores = Q K, the softmax step of each line, and out +=
 * weights V.
 *
 * Always true: a line's state depends on its own q and keys only. Keys of a block that it does not see have weight 0,
 * whether they are computed for its neighbours or not.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/page.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    LINES_MAX = 256,   /* of a tile; each reading of a key serves all of them */
    DOT_BYTES_MAX = 4, /* of an element in dot format, at any level */
    LANE_BYTES = PACK_OUT * 4,
    PAD_BYTES = 64, /* behind each line, or they would all fall into a few sets of the cache */
    SCORES_BYTES = ATTENTION_KEYS * 4 + PAD_BYTES,
    WEIGHTS_BYTES = ATTENTION_KEYS * DOT_BYTES_MAX + PAD_BYTES,
};

/* A worker's memory, laid out for heads of `lanes` blocks of 16. */
struct attention_memory {
    unsigned char *q, *out, *scores, *weights, *totals; /* [LINES_MAX] lines each */
    unsigned char *v;                                   /* [ATTENTION_KEYS] rows of V, in the pages' layout */
    size_t q_bytes, out_bytes;                          /* of a line */
    float max[LINES_MAX];
};

/* What one worker needs, without `max`. */
static size_t memory_bytes(uint32_t lanes)
{
    size_t head_bytes = lanes * (size_t)LANE_BYTES;

    return LINES_MAX * (2 * (head_bytes + PAD_BYTES) + SCORES_BYTES + WEIGHTS_BYTES + LANE_BYTES) +
           ATTENTION_KEYS * head_bytes;
}

static struct attention_memory memory_at(unsigned char *memory, uint32_t lanes)
{
    struct attention_memory laid = {.q = memory, .q_bytes = lanes * (size_t)LANE_BYTES + PAD_BYTES};

    laid.out_bytes = laid.q_bytes;
    laid.out = laid.q + LINES_MAX * laid.q_bytes;
    laid.scores = laid.out + LINES_MAX * laid.out_bytes;
    laid.weights = laid.scores + (size_t)LINES_MAX * SCORES_BYTES;
    laid.totals = laid.weights + (size_t)LINES_MAX * WEIGHTS_BYTES;
    laid.v = laid.totals + (size_t)LINES_MAX * LANE_BYTES;
    return laid;
}

struct attention_job {
    const struct attention_args *args;
    unsigned char *workspace;
    uint32_t group; /* query heads a key head */
    uint32_t tile_rows, row_tiles;
};

struct attention_run {
    const struct attention_args *args;
    struct attention_memory *memory;
    uint32_t group, kv_head;
    uint32_t row_first, row_count;
    uint32_t key_first, key_end; /* that any row sees */
    uint32_t line_first;         /* lines before it have seen all their keys */
    uint32_t lanes;              /* D in whole blocks of 16 */
};

size_t attention_workspace(const void *arguments, uint32_t worker_count)
{
    const struct attention_args *args = arguments;

    return worker_count * memory_bytes(page_lanes(args->store) / PACK_OUT);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static float *floats_at(unsigned char *lines, size_t line_bytes, uint32_t line)
{
    return (float *)(void *)(lines + line * line_bytes);
}

static const struct kv_row *place_of(const struct attention_run *run, uint32_t line)
{
    return &run->args->places[run->row_first + line / run->group];
}

/* Element of the line's head in an array with `stride` elements a row. */
static size_t line_offset(const struct attention_run *run, uint32_t line, size_t stride)
{
    size_t row = run->row_first + line / run->group, head = (size_t)run->kv_head * run->group + line % run->group;

    return row * stride + head * run->args->store->head_dim;
}

static void begin_lines(struct attention_run *run)
{
    const struct attention_args *args = run->args;
    const struct kv_store *store = args->store;
    struct attention_memory *memory = run->memory;

    for (uint32_t line = 0; line < run->row_count * run->group; line++) {
        cpu_to_dot(memory->q + line * memory->q_bytes, store->type,
                   cpu_at(args->q, args->q_type, line_offset(run, line, args->q_stride)), args->q_type,
                   store->head_dim);
        memset(memory->out + line * memory->out_bytes, 0, run->lanes * (size_t)LANE_BYTES);
        memset(memory->totals + line * (size_t)LANE_BYTES, 0, LANE_BYTES);
        memory->max[line] = -INFINITY;
    }
}

/* A block of keys of a run: up to ATTENTION_PAGES pages, of which the first and the last may be seen in part. */
struct key_block {
    uint32_t key_first, key_end; /* seen by any row, inside the block */
    uint32_t page_first, page_count;
    const unsigned char *pages[ATTENTION_PAGES];
};

static struct key_block key_block_at(const struct attention_run *run, uint32_t page_first)
{
    uint32_t base = page_first * KV_PAGE_TOKENS;
    struct key_block keys = {
        .key_first = larger(run->key_first, base),
        .key_end = smaller(run->key_end, base + ATTENTION_KEYS),
        .page_first = page_first,
    };
    const struct kv_sequence *sequence = &run->args->sequences[run->args->places[run->row_first].sequence];

    keys.page_count = (keys.key_end - base + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
    assert(page_first + keys.page_count <= sequence->page_count);
    for (uint32_t p = 0; p < keys.page_count; p++) {
        keys.pages[p] = page_of(run->args->store, sequence, page_first + p);
    }
    return keys;
}

/* scores = Q K for the lines that are not done. */
static void score_block(const struct attention_run *run, const struct key_block *keys)
{
    const struct kv_store *store = run->args->store;
    struct attention_memory *memory = run->memory;
    uint32_t step_elements = store->type == TYPE_BF16 ? 2 : 1;
    struct panel panel = {
        .sum_stride = SCORES_BYTES / sizeof(float),
        .in = memory->q + run->line_first * memory->q_bytes,
        .in_stride_bytes = memory->q_bytes,
        .step_bytes = KV_PAGE_TOKENS * step_elements * kernel_type_bytes(store->type),
        .rows = run->row_count * run->group - run->line_first,
        .steps = store->head_dim / step_elements,
    };

    for (uint32_t page = 0; page < keys->page_count; page += PANEL_BLOCKS) {
        panel.blocks = smaller(PANEL_BLOCKS, keys->page_count - page);
        panel.sum = floats_at(memory->scores, SCORES_BYTES, run->line_first) + page * KV_PAGE_TOKENS;
        for (uint32_t b = 0; b < panel.blocks; b++) {
            panel.weight[b] = keys->pages[page + b] + page_k_offset(store, run->kv_head);
        }
        cpu_panel(store->type, &panel);
    }
}

/* Pages that enter the product with V: an even number, so that tiles of 32 keys have no rest. */
static uint32_t joined_pages(const struct key_block *keys)
{
    return (keys->page_count + 1) / 2 * 2;
}

/* Hides what a line does not see, and turns its scores into weights. */
static void weigh_line(const struct attention_run *run, const struct key_block *keys, uint32_t line)
{
    struct attention_memory *memory = run->memory;
    enum kernel_type type = run->args->store->type;
    const struct kv_row *place = place_of(run, line);
    uint32_t base = keys->page_first * KV_PAGE_TOKENS, count = keys->page_count * KV_PAGE_TOKENS;
    uint32_t first = larger(place->key_first, base) - base, end = smaller(larger(place->key_end, base) - base, count);
    float *scores = floats_at(memory->scores, SCORES_BYTES, line);
    unsigned char *weights = memory->weights + line * (size_t)WEIGHTS_BYTES;
    size_t dot_bytes = cpu_dot_bytes(type), joined = joined_pages(keys) * (size_t)KV_PAGE_TOKENS;

    if (first >= end) {
        memset(weights, 0, joined * dot_bytes);
        return;
    }
    if (joined > count) {
        memset(weights + count * dot_bytes, 0, (joined - count) * dot_bytes);
    }
    for (uint32_t k = 0; k < first; k++) {
        scores[k] = -INFINITY;
    }
    for (uint32_t k = end; k < count; k++) {
        scores[k] = -INFINITY;
    }
    struct softmax_line step = {
        .scores = scores,
        .weights = weights,
        .max = &memory->max[line],
        .total = floats_at(memory->totals, LANE_BYTES, line),
        .out = floats_at(memory->out, memory->out_bytes, line),
        .key_blocks = keys->page_count,
        .out_blocks = run->lanes,
        .scale = run->args->scale,
    };
    if (type == TYPE_F32) {
        cpu_kernels->softmax_f32(&step);
    } else {
        cpu_kernels->softmax_bf16(&step);
    }
}

/* V of the block's pages, one behind the other, with zeros in the slots that no row sees: those may hold anything. */
static void join_v(const struct attention_run *run, const struct key_block *keys)
{
    const struct kv_store *store = run->args->store;
    size_t lanes = run->lanes * (size_t)PACK_OUT, element_bytes = kernel_type_bytes(store->type);
    size_t page_bytes = lanes * KV_PAGE_TOKENS * element_bytes;
    uint32_t base = keys->page_first * KV_PAGE_TOKENS;

    for (uint32_t p = 0; p < keys->page_count; p++) {
        memcpy(run->memory->v + p * page_bytes, keys->pages[p] + page_v_offset(store, run->kv_head), page_bytes);
    }
    memset(run->memory->v + keys->page_count * page_bytes, 0, (joined_pages(keys) - keys->page_count) * page_bytes);
    for (uint32_t token = 0; token < keys->page_count * KV_PAGE_TOKENS; token++) {
        if (base + token >= keys->key_first && base + token < keys->key_end) {
            continue;
        }
        if (store->type == TYPE_F32) {
            memset(run->memory->v + token * lanes * sizeof(float), 0, lanes * sizeof(float));
            continue;
        }
        uint16_t *pairs = (uint16_t *)(void *)run->memory->v + token / 2 * lanes * 2 + token % 2;
        for (size_t i = 0; i < lanes; i++) {
            pairs[i * 2] = 0;
        }
    }
}

/* out += weights V for the lines that are not done. */
static void add_block(const struct attention_run *run, const struct key_block *keys)
{
    enum kernel_type type = run->args->store->type;
    struct attention_memory *memory = run->memory;
    uint32_t step_elements = type == TYPE_BF16 ? 2 : 1;
    struct panel panel = {
        .sum_stride = memory->out_bytes / sizeof(float),
        .in = memory->weights + run->line_first * (size_t)WEIGHTS_BYTES,
        .in_stride_bytes = WEIGHTS_BYTES,
        .step_bytes = run->lanes * (size_t)LANE_BYTES,
        .rows = run->row_count * run->group - run->line_first,
        .steps = joined_pages(keys) * KV_PAGE_TOKENS / step_elements,
        .is_added = true,
    };

    join_v(run, keys);
    for (uint32_t lane = 0; lane < run->lanes; lane += PANEL_BLOCKS) {
        panel.blocks = smaller(PANEL_BLOCKS, run->lanes - lane);
        panel.sum = floats_at(memory->out, memory->out_bytes, run->line_first) + (size_t)lane * PACK_OUT;
        for (uint32_t b = 0; b < panel.blocks; b++) {
            panel.weight[b] = memory->v + (size_t)(lane + b) * LANE_BYTES;
        }
        cpu_panel(type, &panel);
    }
}

static void attend_run(struct attention_run *run)
{
    const struct attention_args *args = run->args;
    const struct kv_store *store = args->store;
    struct attention_memory *memory = run->memory;
    uint32_t line_count = run->row_count * run->group;

    begin_lines(run);
    for (uint32_t page = run->key_first / KV_PAGE_TOKENS; page * KV_PAGE_TOKENS < run->key_end;
         page += ATTENTION_PAGES) {
        struct key_block keys = key_block_at(run, page);
        while (place_of(run, run->line_first)->key_end <= page * KV_PAGE_TOKENS) {
            run->line_first += run->group;
        }
        score_block(run, &keys);
        for (uint32_t line = run->line_first; line < line_count; line++) {
            weigh_line(run, &keys, line);
        }
        add_block(run, &keys);
    }
    for (uint32_t line = 0; line < line_count; line++) {
        size_t first = line_offset(run, line, (size_t)args->heads * store->head_dim);
        cpu_kernels->attention_out(cpu_at_out(args->out, store->type, first), store->type,
                                   floats_at(memory->out, memory->out_bytes, line),
                                   floats_at(memory->totals, LANE_BYTES, line), store->head_dim);
    }
}

/* Rows from `row` on that form a run: one sequence, one beginning. Their ends may differ. */
static uint32_t run_length(const struct attention_args *args, uint32_t row, uint32_t end, uint32_t *key_end)
{
    const struct kv_row *first = &args->places[row];
    uint32_t next = row;

    *key_end = 0;
    while (next < end && args->places[next].sequence == first->sequence &&
           args->places[next].key_first == first->key_first) {
        assert(args->places[next].key_first < args->places[next].key_end);
        *key_end = larger(*key_end, args->places[next].key_end);
        next++;
    }
    return next - row;
}

static void attention_tile(void *ctx, uint32_t tile_index, uint32_t worker_index)
{
    const struct attention_job *job = ctx;
    const struct attention_args *args = job->args;
    uint32_t row = tile_index % job->row_tiles * job->tile_rows, end = smaller(row + job->tile_rows, args->rows);

    uint32_t lanes = page_lanes(args->store) / PACK_OUT;
    struct attention_memory memory = memory_at(job->workspace + worker_index * memory_bytes(lanes), lanes);

    while (row < end) {
        struct attention_run run = {
            .args = args,
            .memory = &memory,
            .group = job->group,
            .kv_head = tile_index / job->row_tiles,
            .row_first = row,
            .key_first = args->places[row].key_first,
            .lanes = lanes,
        };
        run.row_count = run_length(args, row, end, &run.key_end);
        attend_run(&run);
        row += run.row_count;
    }
}

/* Multiply-adds of the whole op. */
static uint64_t work_of(const struct attention_args *args)
{
    uint64_t keys = 0;

    for (uint32_t r = 0; r < args->rows; r++) {
        keys += args->places[r].key_end - args->places[r].key_first;
    }
    return keys * args->heads * args->store->head_dim * 2;
}

void cpu_attention(const void *arguments, struct team *team, void *workspace)
{
    const struct attention_args *args = arguments;
    struct attention_job job = {.args = args, .workspace = workspace, .group = args->heads / args->store->kv_heads};

    if (args->rows == 0) {
        return;
    }
    /* As many rows as a tile holds, but enough tiles for every worker to have some. */
    uint32_t shares = args->rows * args->store->kv_heads / (4 * team->worker_count);
    job.tile_rows = larger(1, smaller(LINES_MAX / job.group, shares));
    job.row_tiles = (args->rows + job.tile_rows - 1) / job.tile_rows;
    cpu_tiles(team, attention_tile, &job, job.row_tiles * args->store->kv_heads, work_of(args));
}
