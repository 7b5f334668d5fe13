/* test_kernels: packed weights, conversions, sizes of KV pages. */
#include "kernels/kernels.h"

#include "kernels/bf16.h"
#include "tests/harness.h"

#include <math.h>
#include <string.h>

enum { OUT = 37, IN = 22 };

static void fill(float *rows)
{
    for (int i = 0; i < OUT * IN; i++) {
        rows[i] = (float)(i % 251) - 100; /* exact in bf16 and f16 */
    }
}

static bool holds(const struct packed_matrix *matrix, const float *rows)
{
    for (uint32_t r = 0; r < OUT; r++) {
        for (uint32_t c = 0; c < IN; c++) {
            if (packed_matrix_get(matrix, r, c) != rows[r * IN + c]) {
                return false;
            }
        }
    }
    return true;
}

static void rows_packed_in_any_order_and_pieces_are_found_again(void)
{
    static float rows[OUT * IN];
    static const uint32_t pieces[][2] = {{20, 17}, {0, 1}, {1, 15}, {16, 4}};

    fill(rows);
    for (enum kernel_type type = TYPE_F32; type <= TYPE_BF16; type++) {
        size_t bytes = (size_t)packed_matrix_bytes(OUT, IN, type);
        struct packed_matrix matrix = {harness_memory(bytes), OUT, IN, type};
        memset(matrix.data, 0xff, bytes);
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            packed_matrix_put(&matrix, pieces[i][0], pieces[i][1], rows + pieces[i][0] * IN, TYPE_F32);
        }
        CU_ASSERT_TRUE(holds(&matrix, rows));
    }
}

static void bf16_and_f16_rows_are_packed_as_they_are(void)
{
    static const uint16_t f16_rows[2][2] = {{0x3c00, 0xc000}, {0x3800, 0x0001}}; /* 1 -2 0.5 2^-24 */
    static const uint16_t bf16_rows[2][2] = {{0x3f80, 0xc000}, {0x3f00, 0x3380}};
    uint16_t from_f16[32], from_bf16[32];
    struct packed_matrix a = {from_f16, 2, 2, TYPE_BF16}, b = {from_bf16, 2, 2, TYPE_BF16};

    packed_matrix_put(&a, 0, 2, f16_rows, TYPE_F16);
    packed_matrix_put(&b, 0, 2, bf16_rows, TYPE_BF16);
    CU_ASSERT_EQUAL(memcmp(from_f16, from_bf16, sizeof from_f16), 0);
    CU_ASSERT_EQUAL(packed_matrix_get(&b, 1, 1), 0x1p-24f);
}

static void the_padding_behind_the_last_row_is_zero(void)
{
    static float rows[OUT * IN];
    static uint16_t data[48 * IN];
    struct packed_matrix matrix = {data, OUT, IN, TYPE_BF16};
    size_t zeros = 0;

    fill(rows);
    CU_ASSERT_EQUAL_FATAL(packed_matrix_bytes(OUT, IN, TYPE_BF16), sizeof data);
    memset(data, 0xff, sizeof data);
    packed_matrix_put(&matrix, 0, OUT, rows, TYPE_F32);
    for (size_t pair = 0; pair < IN / 2; pair++) {
        for (size_t lane = OUT - 32; lane < 16; lane++) {
            zeros += data[32 * IN + pair * 32 + lane * 2] == 0 && data[32 * IN + pair * 32 + lane * 2 + 1] == 0;
        }
    }
    CU_ASSERT_EQUAL(zeros, IN / 2 * 11);
}

static void every_bf16_survives_widening_and_narrowing(void)
{
    size_t equal = 0;

    for (uint32_t half = 0; half < 65536; half++) {
        float value = bf16_widen((uint16_t)half);
        equal += isnan(value) ? isnan(bf16_widen(bf16_narrow(value))) != 0 : bf16_narrow(value) == half;
    }
    CU_ASSERT_EQUAL(equal, 65536);
}

static void narrowing_rounds_ties_to_even(void)
{
    CU_ASSERT_EQUAL(bf16_narrow(float_of_bits(0x3f808000)), 0x3f80);
    CU_ASSERT_EQUAL(bf16_narrow(float_of_bits(0x3f818000)), 0x3f82);
    CU_ASSERT_EQUAL(bf16_narrow(float_of_bits(0x3f808001)), 0x3f81);
    CU_ASSERT_EQUAL(bf16_narrow(float_of_bits(0x7f7fffff)), 0x7f80);
}

static void every_half_float_widens_exactly(void)
{
    size_t equal = 0;

    for (uint32_t half = 0; half < 65536; half++) {
        uint16_t source = (uint16_t)half;
        int exponent = (int)(half >> 10 & 31);
        double fraction = half & 1023;
        double want = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
        float got;
        kernel_widen(&got, &source, TYPE_F16, 1);
        if (exponent == 31) {
            equal += fraction > 0 ? isnan(got) != 0 : isinf(got) != 0;
        } else {
            equal += (double)got == ((half & 0x8000) != 0 ? -want : want);
        }
    }
    CU_ASSERT_EQUAL(equal, 65536);
}

static void kv_pages_cost_what_the_published_model_says(void)
{
    /* Qwen2.5-VL-7B: 28 layers, 4 key heads of 128, bf16: 57,344 bytes a token. */
    CU_ASSERT_EQUAL(28 * kv_store_layer_bytes(4, 128, TYPE_BF16), 57344 * KV_PAGE_TOKENS);
    CU_ASSERT_EQUAL(kv_store_layer_bytes(16, 72, TYPE_F32) % 64, 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(rows_packed_in_any_order_and_pieces_are_found_again),
        CASE(bf16_and_f16_rows_are_packed_as_they_are),
        CASE(the_padding_behind_the_last_row_is_zero),
        CASE(every_bf16_survives_widening_and_narrowing),
        CASE(narrowing_rounds_ties_to_even),
        CASE(every_half_float_widens_exactly),
        CASE(kv_pages_cost_what_the_published_model_says),
        {NULL, NULL},
    };

    return harness_run(argc, argv, "kernels", cases, NULL);
}
