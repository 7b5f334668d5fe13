/* weights: the packed weights' places, and the way of every tensor into them.
 *
 * Always true: a slot's place follows from the tables and the dimensions alone, so the plan and the load cannot differ.
 */
#include "engine/model/weights.h"

#include "engine/io/loader.h"
#include "engine/log.h"
#include "engine/model/bind.h"
#include "engine/model/dims.h"
#include "engine/start.h"

#include <assert.h>
#include <string.h>

enum { PIECE_ROWS = 64 }; /* rows that one worker packs at a time; a multiple of PACK_OUT */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) & ~UINT64_C(63);
}

static uint32_t repeat_count(const struct checkpoint *checkpoint, enum repeat repeat)
{
    switch (repeat) {
    case EACH_LAYER:
        return checkpoint->dims[LAYERS];
    case EACH_BLOCK:
        return checkpoint->dims[V_BLOCKS];
    case ONCE:
        break;
    }
    return 1;
}

static uint64_t row_bytes(const struct weight_bank *bank, const struct weight_row *row)
{
    const uint32_t *dims = bank->checkpoint->dims;

    if (bank->type == TYPE_BF16 && row->in != NO_DIM && dims[row->in] % 2 != 0) { /* its kernels take inputs in pairs */
        start_refuse(START_BAD_MODEL, "config.json: %s = %u is odd; such a model needs --dtype float32",
                     dims_name(row->in), dims[row->in]);
    }
    return row->in == NO_DIM ? aligned(dims[row->out] * sizeof(float))
                             : aligned(packed_matrix_bytes(dims[row->out], dims[row->in], bank->type));
}

void weights_place(struct weight_bank *bank, const struct checkpoint *checkpoint, enum kernel_type type)
{
    *bank = (struct weight_bank){.checkpoint = checkpoint, .type = type};
    for (const struct weight_row *row = checkpoint->arch->weights; row->slot != 0; row++) {
        assert(row->slot < WEIGHT_SLOTS_MAX && bank->row[row->slot] == NULL);
        bank->row[row->slot] = row;
        if (row->tied_to != 0 && checkpoint->is_tied) {
            assert(bank->row[row->tied_to] != NULL); /* its row comes first */
            bank->at[row->slot] = bank->at[row->tied_to];
            continue;
        }
        uint32_t count = repeat_count(checkpoint, row->repeat);
        uint64_t bytes = row_bytes(bank, row);
        bank->at[row->slot] = bank->bytes;
        bank->stride[row->slot] = row->repeat == ONCE ? 0 : bytes;
        bank->bytes += count * bytes;
    }
}

static unsigned char *slot_address(const struct weight_bank *bank, uint8_t slot, uint32_t layer)
{
    assert(slot > 0 && slot < WEIGHT_SLOTS_MAX && bank->row[slot] != NULL);
    assert(bank->stride[slot] == 0 || layer < repeat_count(bank->checkpoint, bank->row[slot]->repeat));
    return bank->base == NULL ? NULL : bank->base + bank->at[slot] + layer * bank->stride[slot];
}

struct packed_matrix weights_matrix(const struct weight_bank *bank, uint8_t slot, uint32_t layer)
{
    void *data = slot_address(bank, slot, layer);
    const struct weight_row *row = bank->row[slot];

    assert(row->in != NO_DIM);
    return (struct packed_matrix){
        .data = data,
        .out = bank->checkpoint->dims[row->out],
        .in = bank->checkpoint->dims[row->in],
        .type = bank->type,
    };
}

const float *weights_vector(const struct weight_bank *bank, uint8_t slot, uint32_t layer)
{
    static const float somewhere[1]; /* stands for "given" while measuring */

    if (slot == 0) {
        return NULL;
    }
    const void *data = slot_address(bank, slot, layer);
    assert(bank->row[slot]->in == NO_DIM);
    return data != NULL ? data : somewhere;
}

/* ---- filling ---- */

/* One tensor on its way into one or two slots; workers take pieces of PIECE_ROWS rows. */
struct fill {
    const struct weight_bank *bank;
    struct bind_place place;
    const unsigned char *source; /* [out][in] of source_type; NULL: made up */
    enum kernel_type source_type;
    uint32_t out, in, split; /* rows from `split` on belong to the second slot */
    unsigned char *rows;     /* scratch for made-up rows: [workers][PIECE_ROWS][in] bf16 */
};

static uint32_t widest_in(const struct checkpoint *checkpoint)
{
    uint32_t widest = 1;

    for (const struct tensor_row *row = checkpoint->arch->tensors; row->name != NULL; row++) {
        uint32_t in = bind_in(checkpoint, row);
        widest = in > widest ? in : widest;
    }
    return widest;
}

uint64_t weights_scratch_bytes(const struct checkpoint *checkpoint, uint32_t worker_count)
{
    uint64_t made_up = aligned((uint64_t)worker_count * PIECE_ROWS * widest_in(checkpoint) * sizeof(uint16_t));
    uint64_t loader = loader_bytes(checkpoint);

    return made_up > loader ? made_up : loader;
}

/* Uniform in [-1e-3, 1e-3): a hash of the element's index (the finalizer of splitmix64). */
static float made_up_value(uint64_t index)
{
    uint64_t mixed = (index + 1) * UINT64_C(0x9E3779B97F4A7C15);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    mixed ^= mixed >> 31;
    return (float)(mixed >> 40) * (2e-3F / 16777216.0F) - 1e-3F;
}

static const void *make_rows_up(const struct fill *fill, uint32_t first, uint32_t count, uint32_t worker)
{
    uint16_t *rows = (uint16_t *)(void *)(fill->rows + (size_t)worker * PIECE_ROWS * fill->in * sizeof(uint16_t));
    uint64_t begin = (uint64_t)first * fill->in, total = (uint64_t)count * fill->in;
    float some[256];

    for (uint64_t done = 0; done < total;) {
        uint64_t left = total - done, now = left < 256 ? left : 256;
        for (uint64_t i = 0; i < now; i++) {
            some[i] = made_up_value(begin + done + i);
        }
        kernel_narrow(rows + done, some, now);
        done += now;
    }
    return rows;
}

/* Rows of the tensor [first, first + count) that all belong to one slot, as its rows [at, at + count). */
static void put_rows(const struct fill *fill, uint8_t slot, uint32_t at, uint32_t first, uint32_t count,
                     uint32_t worker)
{
    uint32_t layer = fill->place.layer;
    size_t element = kernel_type_bytes(fill->source_type);
    const void *source = fill->source != NULL ? fill->source + (size_t)first * fill->in * element
                                              : make_rows_up(fill, first, count, worker);

    if (fill->bank->row[slot]->in == NO_DIM) {
        float *vector = (float *)(void *)slot_address(fill->bank, slot, layer);
        assert(vector != NULL && at + count <= fill->bank->checkpoint->dims[fill->bank->row[slot]->out]);
        kernel_widen(vector + at, source, fill->source_type, count);
        return;
    }
    struct packed_matrix matrix = weights_matrix(fill->bank, slot, layer);
    assert(matrix.in == fill->in && at + count <= matrix.out);
    packed_matrix_put(&matrix, at, count, source, fill->source_type);
}

static void fill_piece(void *ctx, uint32_t tile, uint32_t worker)
{
    const struct fill *fill = ctx;
    const struct tensor_row *row = fill->place.row;
    uint32_t at = row->at != NO_DIM ? fill->bank->checkpoint->dims[row->at] : 0;
    uint32_t first = tile * PIECE_ROWS;
    uint32_t end = first + PIECE_ROWS < fill->out ? first + PIECE_ROWS : fill->out;

    if (first < fill->split) {
        uint32_t stop = end < fill->split ? end : fill->split;
        put_rows(fill, row->slot, at + first, first, stop - first, worker);
        first = stop;
    }
    if (first < end) {
        put_rows(fill, row->rest_slot, first - fill->split, first, end - first, worker);
    }
}

static enum kernel_type kernel_type_of(enum tensor_type type)
{
    assert(type != TENSOR_OTHER);
    return type == TENSOR_F32 ? TYPE_F32 : type == TENSOR_F16 ? TYPE_F16 : TYPE_BF16;
}

void weights_load(struct weight_bank *bank, enum load_format format, void *scratch, uint64_t scratch_bytes,
                  struct team *team)
{
    const struct checkpoint *checkpoint = bank->checkpoint;
    struct bind_place place = {.row = NULL};
    struct loader *loader = NULL;

    assert(bank->base != NULL);
    assert(scratch_bytes >= weights_scratch_bytes(checkpoint, team->worker_count));
    if (format == LOAD_AUTO) {
        loader = loader_open(checkpoint, scratch, scratch_bytes);
        log_info("weights tensors=%u file_bytes=%llu packed_bytes=%llu", checkpoint->tensor_count,
                 (unsigned long long)loader_file_bytes(loader), (unsigned long long)bank->bytes);
    } else {
        log_info("weights_made_up tensors=%u packed_bytes=%llu", checkpoint->tensor_count,
                 (unsigned long long)bank->bytes);
    }
    while (bind_next(checkpoint, &place)) {
        enum tensor_type type = TENSOR_BF16;
        struct fill fill = {
            .bank = bank,
            .place = place,
            .out = bind_out(checkpoint, place.row),
            .in = bind_in(checkpoint, place.row),
            .rows = scratch,
        };
        fill.source = loader != NULL ? loader_tensor(loader, place.index, &type) : NULL;
        fill.source_type = kernel_type_of(type);
        fill.split = place.row->rest_slot != 0 ? checkpoint->dims[place.row->split] : fill.out;
        team->run(team, fill_piece, &fill, (fill.out + PIECE_ROWS - 1) / PIECE_ROWS);
    }
    if (loader != NULL) {
        loader_close(loader);
    }
}
