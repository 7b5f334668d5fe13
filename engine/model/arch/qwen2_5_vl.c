/* Qwen2.5-VL as data: dimensions, weights, buffers, steps.
 *
 * PITFALLS, each made by somebody before:
 * - q, k and v have biases, o has none; in the tower all linears but the patch embedding have one.
 * - The head is tied in the 3B and not in the 7B: config.json decides, never the presence of the tensor.
 * - The axis of a rotary frequency comes from mrope_section in sections (t, h, w), not interleaved as in Qwen3-VL.
 * - The tower's tokens are walked window by window in every block, the full-attention ones too.
 * - The tower's MLP is 3420 wide: a multiple of 4 only.
 */
#include "engine/model/model.h"

enum weight {
    NO_WEIGHT,
    EMBED, FINAL_NORM, HEAD,
    ATTN_NORM, WQ, BQ, WK, BK, WV, BV, WO,
    FFN_NORM, W_GATE, W_UP, W_DOWN,
    VW_PATCH,
    V_NORM1, VW_QKV, VB_QKV, VW_PROJ, VB_PROJ,
    V_NORM2, VW_GATE, VB_GATE, VW_UP, VB_UP, VW_DOWN, VB_DOWN,
    V_NORM_Q, VW_MERGE1, VB_MERGE1, VW_MERGE2, VB_MERGE2,
};

#define VISION "vision_config."

static const struct dim_row dims[] = {
    {.dim = LAYERS,     .key = "num_hidden_layers"},
    {.dim = HIDDEN,     .key = "hidden_size"},
    {.dim = HEADS,      .key = "num_attention_heads"},
    {.dim = KV_HEADS,   .key = "num_key_value_heads"},
    {.dim = HEAD_DIM,   .key = "head_dim", .quotient_of = {HIDDEN, HEADS}},
    {.dim = Q_OUT,      .product_of = {HEADS, HEAD_DIM}},
    {.dim = KV_OUT,     .product_of = {KV_HEADS, HEAD_DIM}},
    {.dim = FFN,        .key = "intermediate_size"},
    {.dim = VOCAB,      .key = "vocab_size"},
    {.dim = V_BLOCKS,   .key = VISION "depth"},
    {.dim = V_HIDDEN,   .key = VISION "hidden_size"},
    {.dim = V_HEADS,    .key = VISION "num_heads"},
    {.dim = V_HEAD_DIM, .quotient_of = {V_HIDDEN, V_HEADS}},
    {.dim = V_QKV,      .factor = 3, .product_of = {V_HIDDEN}},
    {.dim = V_FFN,      .key = VISION "intermediate_size"},
    {.dim = V_OUT,      .key = VISION "out_hidden_size"},
    {.dim = V_CHANNELS, .key = VISION "in_chans", .alias = VISION "in_channels", .fallback = 3},
    {.dim = V_FRAMES,   .key = VISION "temporal_patch_size", .fallback = 2},
    {.dim = V_PATCH,    .key = VISION "patch_size", .fallback = 14},
    {.dim = V_PATCH_IN, .product_of = {V_CHANNELS, V_FRAMES, V_PATCH, V_PATCH}},
    {.dim = V_MERGE,    .key = VISION "spatial_merge_size", .fallback = 2},
    {.dim = V_GROUP,    .product_of = {V_MERGE, V_MERGE}},
    {.dim = V_MERGED,   .product_of = {V_GROUP, V_HIDDEN}},
    {.dim = V_WINDOW,   .key = VISION "window_size", .fallback = 112},
    {.dim = NO_DIM},
};

#define LAYER "model.layers.%d."
#define BLOCK "visual.blocks.%d."

#define WEIGHT(id, tensor, times, use, ...) \
    {.slot = id, .name = tensor, .repeat = times, .kind = use, .shape = {__VA_ARGS__}}

static const struct weight_row weights[] = {
    WEIGHT(EMBED,      "model.embed_tokens.weight",                  ONCE,       TABLE, VOCAB, HIDDEN),
    WEIGHT(FINAL_NORM, "model.norm.weight",                          ONCE,       VECTOR, HIDDEN),
    {.slot = HEAD, .name = "lm_head.weight", .repeat = ONCE, .kind = MATRIX, .shape = {VOCAB, HIDDEN},
     .presence = ABSENT_IF_TIED, .tied_to = EMBED},
    WEIGHT(ATTN_NORM,  LAYER "input_layernorm.weight",               EACH_LAYER, VECTOR, HIDDEN),
    WEIGHT(WQ,         LAYER "self_attn.q_proj.weight",              EACH_LAYER, MATRIX, Q_OUT, HIDDEN),
    WEIGHT(BQ,         LAYER "self_attn.q_proj.bias",                EACH_LAYER, VECTOR, Q_OUT),
    WEIGHT(WK,         LAYER "self_attn.k_proj.weight",              EACH_LAYER, MATRIX, KV_OUT, HIDDEN),
    WEIGHT(BK,         LAYER "self_attn.k_proj.bias",                EACH_LAYER, VECTOR, KV_OUT),
    WEIGHT(WV,         LAYER "self_attn.v_proj.weight",              EACH_LAYER, MATRIX, KV_OUT, HIDDEN),
    WEIGHT(BV,         LAYER "self_attn.v_proj.bias",                EACH_LAYER, VECTOR, KV_OUT),
    WEIGHT(WO,         LAYER "self_attn.o_proj.weight",              EACH_LAYER, MATRIX, HIDDEN, Q_OUT),
    WEIGHT(FFN_NORM,   LAYER "post_attention_layernorm.weight",      EACH_LAYER, VECTOR, HIDDEN),
    WEIGHT(W_GATE,     LAYER "mlp.gate_proj.weight",                 EACH_LAYER, MATRIX, FFN, HIDDEN),
    WEIGHT(W_UP,       LAYER "mlp.up_proj.weight",                   EACH_LAYER, MATRIX, FFN, HIDDEN),
    WEIGHT(W_DOWN,     LAYER "mlp.down_proj.weight",                 EACH_LAYER, MATRIX, HIDDEN, FFN),

    {.slot = VW_PATCH, .name = "visual.patch_embed.proj.weight", .repeat = ONCE, .kind = MATRIX,
     .shape = {V_HIDDEN, V_CHANNELS, V_FRAMES, V_PATCH, V_PATCH}, .in = V_PATCH_IN},
    WEIGHT(V_NORM1,    BLOCK "norm1.weight",                   EACH_BLOCK, VECTOR, V_HIDDEN),
    WEIGHT(VW_QKV,     BLOCK "attn.qkv.weight",                EACH_BLOCK, MATRIX, V_QKV, V_HIDDEN),
    WEIGHT(VB_QKV,     BLOCK "attn.qkv.bias",                  EACH_BLOCK, VECTOR, V_QKV),
    WEIGHT(VW_PROJ,    BLOCK "attn.proj.weight",               EACH_BLOCK, MATRIX, V_HIDDEN, V_HIDDEN),
    WEIGHT(VB_PROJ,    BLOCK "attn.proj.bias",                 EACH_BLOCK, VECTOR, V_HIDDEN),
    WEIGHT(V_NORM2,    BLOCK "norm2.weight",                   EACH_BLOCK, VECTOR, V_HIDDEN),
    WEIGHT(VW_GATE,    BLOCK "mlp.gate_proj.weight",           EACH_BLOCK, MATRIX, V_FFN, V_HIDDEN),
    WEIGHT(VB_GATE,    BLOCK "mlp.gate_proj.bias",             EACH_BLOCK, VECTOR, V_FFN),
    WEIGHT(VW_UP,      BLOCK "mlp.up_proj.weight",             EACH_BLOCK, MATRIX, V_FFN, V_HIDDEN),
    WEIGHT(VB_UP,      BLOCK "mlp.up_proj.bias",               EACH_BLOCK, VECTOR, V_FFN),
    WEIGHT(VW_DOWN,    BLOCK "mlp.down_proj.weight",           EACH_BLOCK, MATRIX, V_HIDDEN, V_FFN),
    WEIGHT(VB_DOWN,    BLOCK "mlp.down_proj.bias",             EACH_BLOCK, VECTOR, V_HIDDEN),
    WEIGHT(V_NORM_Q,   "visual.merger.ln_q.weight",            ONCE,       VECTOR, V_HIDDEN),
    WEIGHT(VW_MERGE1,  "visual.merger.mlp.0.weight",           ONCE,       MATRIX, V_MERGED, V_MERGED),
    WEIGHT(VB_MERGE1,  "visual.merger.mlp.0.bias",             ONCE,       VECTOR, V_MERGED),
    WEIGHT(VW_MERGE2,  "visual.merger.mlp.2.weight",           ONCE,       MATRIX, V_OUT, V_MERGED),
    WEIGHT(VB_MERGE2,  "visual.merger.mlp.2.bias",             ONCE,       VECTOR, V_OUT),
    {0},
};

/* What transformers 5 writes, and files made from its memory. */
static const struct prefix_row prefixes[] = {
    {"model.language_model.", "model."},
    {"model.visual.", "visual."},
    {0},
};

static const char *const ignored_suffixes[] = {"rotary_emb.inv_freq", "rotary_pos_emb.inv_freq", 0};

const struct arch arch_qwen2_5_vl = {
    .hf_name = "Qwen2_5_VLForConditionalGeneration",
    .dims = dims,
    .weights = weights,
    .prefixes = prefixes,
    .ignored_suffixes = ignored_suffixes,
};
