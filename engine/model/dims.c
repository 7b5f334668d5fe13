/* dims: the numbers behind an architecture's symbols.
 *
 * Always true after dims_read: every symbol of the table is at least 1 and small enough that products of any two fit 64
 * bits.
 */
#include "engine/model/dims.h"

#include "config.h"
#include "engine/log.h"
#include "engine/start.h"

#include <assert.h>
#include <string.h>

enum { DIM_MAX = 1 << 24 }; /* of any symbol: a vocabulary or a width beyond it is a mistake in the file */

#define NAME(dim) [dim] = #dim
static const char *const names[DIM_COUNT] = {
    NAME(NO_DIM),   NAME(LAYERS),     NAME(HIDDEN),   NAME(HEADS),     NAME(KV_HEADS),    NAME(HEAD_DIM),
    NAME(HALF_DIM), NAME(Q_OUT),      NAME(KV_OUT),   NAME(QK_OUT),    NAME(QKV_OUT),     NAME(FFN),
    NAME(VOCAB),    NAME(V_BLOCKS),   NAME(V_HIDDEN), NAME(V_HEADS),   NAME(V_HEAD_DIM),  NAME(V_HALF_DIM),
    NAME(V_KV),     NAME(V_QKV),      NAME(V_FFN),    NAME(V_OUT),     NAME(V_CHANNELS),  NAME(V_FRAMES),
    NAME(V_PATCH),  NAME(V_PATCH_IN), NAME(V_MERGE),  NAME(V_GROUP),   NAME(V_MERGED),    NAME(V_WINDOW),
    NAME(TOKENS),   NAME(LOGIT_ROWS), NAME(PATCHES),  NAME(TILE_ROWS), NAME(TILE_GROUPS),
};

const char *dims_name(enum dim dim)
{
    assert(dim < DIM_COUNT);
    assert(names[dim] != NULL);
    return names[dim];
}

/* The number under the row's key or its other spelling. */
static bool read_key(const struct config_text *config, const struct dim_row *row, uint32_t *value)
{
    char path[CONFIG_PATH_BYTES];

    if (row->key == NULL) {
        return false;
    }
    if (strncmp(row->key, "vision_config.", strlen("vision_config.")) == 0) {
        return config_u32(config, row->key, value) || (row->alias != NULL && config_u32(config, row->alias, value));
    }
    return config_u32(config, config_text_path(config, row->key, path), value);
}

static uint64_t multiply(const struct dim_row *row, const uint32_t *dims)
{
    uint64_t product = row->factor > 0 ? row->factor : 1;

    for (uint32_t i = 0; i < 4 && row->product_of[i] != NO_DIM; i++) {
        assert(dims[row->product_of[i]] > 0);
        if (__builtin_mul_overflow(product, (uint64_t)dims[row->product_of[i]], &product)) {
            return UINT64_MAX;
        }
    }
    return product;
}

static uint64_t divide(const struct dim_row *row, const struct config_text *config, const uint32_t *dims)
{
    uint32_t over = dims[row->quotient_of[0]];
    uint32_t under = row->divisor > 0 ? row->divisor : dims[row->quotient_of[1]];

    assert(under > 0);
    if (over % under != 0) {
        start_refuse(START_BAD_MODEL, "%s: %s = %u is not a multiple of %s %u", config->file,
                     dims_name(row->quotient_of[0]), over, row->divisor > 0 ? "" : dims_name(row->quotient_of[1]),
                     under);
    }
    return over / under;
}

static uint64_t evaluate(const struct dim_row *row, const struct config_text *config, const uint32_t *dims)
{
    uint32_t value = 0;

    if (read_key(config, row, &value)) {
        return value;
    }
    if (row->product_of[0] != NO_DIM) {
        return multiply(row, dims);
    }
    if (row->sum_of[0] != NO_DIM) {
        return (uint64_t)dims[row->sum_of[0]] + dims[row->sum_of[1]];
    }
    if (row->quotient_of[0] != NO_DIM) {
        return divide(row, config, dims);
    }
    if (row->fallback > 0) {
        log_warn("config_default file=%s key=%s value=%u", config->file, row->key, row->fallback);
        return row->fallback;
    }
    start_refuse(START_BAD_MODEL, "%s: \"%s\" is missing", config->file, row->key);
}

static void check_bound(const struct config_text *config, enum dim dim, const uint32_t *dims, uint32_t most)
{
    if (dims[dim] > most) {
        start_refuse(START_BAD_MODEL, "%s: %s = %u is more than the %u this program is built for", config->file,
                     dims_name(dim), dims[dim], most);
    }
}

static void check_multiple(const struct config_text *config, enum dim dim, const uint32_t *dims, uint32_t of,
                           const char *of_name)
{
    if (dims[dim] % of != 0) {
        start_refuse(START_BAD_MODEL, "%s: %s = %u is not a multiple of %s = %u", config->file, dims_name(dim),
                     dims[dim], of_name, of);
    }
}

static void check_vision(const struct config_text *config, const uint32_t *dims)
{
    check_bound(config, V_BLOCKS, dims, VISION_BLOCKS_MAX);
    check_bound(config, V_HEAD_DIM, dims, HEAD_DIM_MAX);
    check_bound(config, V_CHANNELS, dims, 3);
    check_bound(config, V_PATCH, dims, VISION_PATCH_MAX);
    check_bound(config, V_MERGE, dims, VISION_MERGE_MAX);
    check_bound(config, V_WINDOW, dims, VISION_WINDOW_MAX);
    check_multiple(config, V_HEAD_DIM, dims, 4, "the rotary's quarter");
    if (dims[V_CHANNELS] != 3) {
        start_refuse(START_BAD_MODEL, "%s: %u channels; pictures have 3", config->file, dims[V_CHANNELS]);
    }
    if (dims[V_WINDOW] < dims[V_MERGE] * dims[V_PATCH]) {
        start_refuse(START_BAD_MODEL, "%s: a window of %u pixels is smaller than a merged patch of %u", config->file,
                     dims[V_WINDOW], dims[V_MERGE] * dims[V_PATCH]);
    }
    if (dims[V_OUT] != dims[HIDDEN]) {
        start_refuse(START_BAD_MODEL, "%s: the vision tower's out_hidden_size %u is not the text's hidden_size %u",
                     config->file, dims[V_OUT], dims[HIDDEN]);
    }
}

void dims_read(const struct arch *arch, const struct config_text *config, uint32_t *dims)
{
    assert(arch->dims != NULL);
    memset(dims, 0, DIM_COUNT * sizeof dims[0]);
    for (const struct dim_row *row = arch->dims; row->dim != NO_DIM; row++) {
        uint64_t value = evaluate(row, config, dims);
        if (value == 0 || value > DIM_MAX) {
            start_refuse(START_BAD_MODEL, "%s: \"%s\" (%s) is %llu; expected 1 to %d", config->file,
                         row->key != NULL ? row->key : "a product", dims_name(row->dim), (unsigned long long)value,
                         DIM_MAX);
        }
        dims[row->dim] = (uint32_t)value;
    }
    assert(dims[LAYERS] > 0 && dims[HEADS] > 0 && dims[KV_HEADS] > 0 && dims[HEAD_DIM] > 0);
    check_bound(config, LAYERS, dims, LAYERS_MAX);
    check_bound(config, HEAD_DIM, dims, HEAD_DIM_MAX);
    check_multiple(config, HEADS, dims, dims[KV_HEADS], "KV_HEADS");
    if (dims[V_BLOCKS] > 0) {
        check_vision(config, dims);
    }
}
