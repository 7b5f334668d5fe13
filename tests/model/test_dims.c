/* dims: a table of every kind of row, and what each kind refuses. */
#include "engine/model/dims.h"

#include "tests/model/model_copy.h"

/* A small architecture: a row of each kind. */
static const struct dim_row rows[] = {
    {.dim = LAYERS, .key = "layers"},
    {.dim = HIDDEN, .key = "hidden"},
    {.dim = HEADS, .key = "heads", .alias = "unused"},
    {.dim = KV_HEADS, .key = "kv_heads"},
    {.dim = HEAD_DIM, .key = "head_dim", .quotient_of = {HIDDEN, HEADS}},
    {.dim = HALF_DIM, .quotient_of = {HEAD_DIM}, .divisor = 2},
    {.dim = Q_OUT, .product_of = {HEADS, HEAD_DIM}},
    {.dim = KV_OUT, .factor = 3, .product_of = {KV_HEADS, HEAD_DIM}},
    {.dim = QK_OUT, .sum_of = {Q_OUT, KV_OUT}},
    {.dim = FFN, .key = "vision_config.ffn", .alias = "vision_config.mlp", .fallback = 77},
    {.dim = NO_DIM},
};

static const struct arch arch = {.hf_name = "test", .dims = rows};
static const char *json;

static void read_json(const char *folder)
{
    uint32_t dims[DIM_COUNT];
    struct config_text config = {.file = "config.json", .text = {json, strlen(json)}};
    (void)folder;
    config_text_open(&config);
    dims_read(&arch, &config, dims);
}

static bool refuses(const char *text, const char *const *parts)
{
    static struct model_copy copy;
    json = text;
    copy_try(&copy, read_json);
    return copy_said(&copy, 4, parts);
}

#define REFUSES(text, ...) refuses(text, (const char *const[]){__VA_ARGS__, NULL})

static void rows_are_evaluated_in_order(void)
{
    uint32_t dims[DIM_COUNT];
    const char text[] = "{\"layers\":2,\"hidden\":32,\"heads\":4,\"kv_heads\":2,\"vision_config\":{\"mlp\":5}}";
    struct config_text config = {.file = "config.json", .text = {text, sizeof text - 1}};
    dims_read(&arch, &config, dims);
    CU_ASSERT(dims[HEAD_DIM] == 8 && dims[HALF_DIM] == 4 && dims[Q_OUT] == 32 && dims[KV_OUT] == 48);
    CU_ASSERT(dims[QK_OUT] == 80 && dims[FFN] == 5 && dims[TOKENS] == 0 && dims[NO_DIM] == 0);
}

static void a_key_comes_before_a_quotient(void)
{
    uint32_t dims[DIM_COUNT];
    const char text[] = "{\"layers\":2,\"hidden\":33,\"heads\":4,\"kv_heads\":2,\"head_dim\":16}";
    struct config_text config = {.file = "config.json", .text = {text, sizeof text - 1}};
    dims_read(&arch, &config, dims);
    CU_ASSERT(dims[HEAD_DIM] == 16 && dims[Q_OUT] == 64 && dims[FFN] == 77);
}

static void what_cannot_be_is_refused_by_key(void)
{
    CU_ASSERT(REFUSES("{\"layers\":2}", "\"hidden\" is missing"));
    CU_ASSERT(REFUSES("{\"layers\":0}", "\"layers\"", "is 0"));
    CU_ASSERT(REFUSES("{\"layers\":2,\"hidden\":33,\"heads\":4,\"kv_heads\":2}", "HIDDEN = 33", "HEADS 4"));
    CU_ASSERT(REFUSES("{\"layers\":2,\"hidden\":12,\"heads\":4,\"kv_heads\":2}", "HEAD_DIM = 3", "2"));
    CU_ASSERT(REFUSES("{\"layers\":2,\"hidden\":32,\"heads\":4,\"kv_heads\":3}", "HEADS = 4", "KV_HEADS"));
    CU_ASSERT(REFUSES("{\"layers\":999,\"hidden\":32,\"heads\":4,\"kv_heads\":2}", "LAYERS = 999", "128"));
    CU_ASSERT(REFUSES("{\"layers\":2,\"hidden\":8192,\"heads\":4,\"kv_heads\":2}", "HEAD_DIM = 2048"));
    CU_ASSERT(REFUSES("{\"layers\":2,\"hidden\":99999999,\"heads\":1,\"kv_heads\":1}", "\"hidden\"", "99999999"));
    CU_ASSERT(
        REFUSES("{\"layers\":2,\"hidden\":16777216,\"heads\":16777216,\"kv_heads\":1,\"head_dim\":16777216}", "Q_OUT"));
}

static void every_symbol_has_a_name(void)
{
    for (int dim = 0; dim < DIM_COUNT; dim++) {
        CU_ASSERT(strlen(dims_name((enum dim)dim)) > 2);
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(rows_are_evaluated_in_order),
        CASE(a_key_comes_before_a_quotient),
        CASE(what_cannot_be_is_refused_by_key),
        CASE(every_symbol_has_a_name),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "dims", cases, NULL);
}
