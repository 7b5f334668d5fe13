/* kernels: sizes of packed weights and KV pages, and the conversions that the loader and the tests need.
 *
 * Always true: what packed_matrix_put writes and what packed_matrix_get reads is the layout that kernels.h states, and
 * every op's implementation reads the same.
 */
#include "kernels/kernels.h"

#include "kernels/bf16.h"

#include <assert.h>
#include <string.h>

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

uint64_t packed_matrix_bytes(uint32_t out, uint32_t in, enum kernel_type type)
{
    assert(type == TYPE_F32 || (type == TYPE_BF16 && in % 2 == 0));

    return round_up(out, PACK_OUT) * in * kernel_type_bytes(type);
}

/* Place of an element in `data`, in elements. */
static size_t packed_index(const struct packed_matrix *matrix, uint32_t row, uint32_t column)
{
    size_t block = (size_t)(row / PACK_OUT) * PACK_OUT * matrix->in;
    size_t lane = row % PACK_OUT;

    if (matrix->type == TYPE_F32) {
        return block + (size_t)column * PACK_OUT + lane;
    }
    return block + (size_t)(column / 2) * PACK_OUT * 2 + lane * 2 + column % 2;
}

static float half_widen(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = (half >> 10) & 31, fraction = half & 1023;

    if (exponent == 31) {
        return float_of_bits(sign | 0x7f800000 | fraction << 13);
    }
    if (exponent == 0) { /* zero or denormal: fraction * 2^-24, exactly */
        float value = (float)fraction * 0x1p-24f;
        return float_of_bits(sign | bits_of_float(value));
    }
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static float source_at(const void *source, enum kernel_type type, uint64_t i)
{
    switch (type) {
    case TYPE_F32:
        return ((const float *)source)[i];
    case TYPE_BF16:
        return bf16_widen(((const uint16_t *)source)[i]);
    case TYPE_F16:
        return half_widen(((const uint16_t *)source)[i]);
    }
    assert(false && "type");
    return 0;
}

/* One row into its lane of its block. Rows of the weight's own type are moved as they are: a load of gigabytes. */
static void put_row(const struct packed_matrix *matrix, uint32_t row, const void *source, enum kernel_type source_type,
                    uint64_t source_first)
{
    uint32_t in = matrix->in;
    size_t lane = packed_index(matrix, row, 0);

    if (matrix->type == TYPE_F32) {
        float *out = (float *)matrix->data + lane;
        for (uint32_t i = 0; i < in; i++) {
            out[(size_t)i * PACK_OUT] = source_at(source, source_type, source_first + i);
        }
        return;
    }
    uint16_t *out = (uint16_t *)matrix->data + lane;
    if (source_type == TYPE_BF16) {
        const uint16_t *pairs = (const uint16_t *)source + source_first;
        for (uint32_t i = 0; i < in; i += 2) {
            memcpy(out + (size_t)i * PACK_OUT, pairs + i, 2 * sizeof *out);
        }
        return;
    }
    for (uint32_t i = 0; i < in; i++) {
        out[(size_t)(i / 2) * PACK_OUT * 2 + i % 2] = bf16_narrow(source_at(source, source_type, source_first + i));
    }
}

/* The lanes behind the last row. */
static void clear_padding(const struct packed_matrix *matrix)
{
    for (uint32_t row = matrix->out; row % PACK_OUT != 0; row++) {
        for (uint32_t i = 0; i < matrix->in; i++) {
            memset((unsigned char *)matrix->data + packed_index(matrix, row, i) * kernel_type_bytes(matrix->type), 0,
                   kernel_type_bytes(matrix->type));
        }
    }
}

void packed_matrix_put(const struct packed_matrix *matrix, uint32_t row_first, uint32_t row_count, const void *source,
                       enum kernel_type source_type)
{
    assert(matrix->type == TYPE_F32 || (matrix->type == TYPE_BF16 && matrix->in % 2 == 0));
    assert(row_first <= matrix->out && row_count <= matrix->out - row_first);

    for (uint32_t r = 0; r < row_count; r++) {
        put_row(matrix, row_first + r, source, source_type, (uint64_t)r * matrix->in);
    }
    if (row_count > 0 && row_first + row_count == matrix->out) {
        clear_padding(matrix);
    }
}

float packed_matrix_get(const struct packed_matrix *matrix, uint32_t row, uint32_t column)
{
    assert(row < matrix->out && column < matrix->in);

    return source_at(matrix->data, matrix->type, packed_index(matrix, row, column));
}

void kernel_widen(float *out, const void *source, enum kernel_type source_type, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        out[i] = source_at(source, source_type, i);
    }
}

void kernel_narrow(uint16_t *out, const float *source, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        out[i] = bf16_narrow(source[i]);
    }
}

size_t kv_store_k_bytes(uint32_t kv_heads, uint32_t head_dim, enum kernel_type type)
{
    return (size_t)kv_heads * head_dim * KV_PAGE_TOKENS * kernel_type_bytes(type);
}

size_t kv_store_layer_bytes(uint32_t kv_heads, uint32_t head_dim, enum kernel_type type)
{
    size_t lanes = (size_t)round_up(head_dim, PACK_OUT);

    assert(type == TYPE_F32 || type == TYPE_BF16);
    return kv_store_k_bytes(kv_heads, head_dim, type) + kv_heads * lanes * KV_PAGE_TOKENS * kernel_type_bytes(type);
}
