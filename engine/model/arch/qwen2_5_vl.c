/* Qwen2.5-VL as data: dimensions, weights, tensors, buffers, steps.
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
    ATTN_NORM, W_QKV, B_QKV, W_O, FFN_NORM, W_GATE, W_UP, W_DOWN,
    VW_PATCH,
    V_NORM1, VW_Q, VB_Q, VW_KV, VB_KV, VW_O, VB_O,
    V_NORM2, VW_GATE, VB_GATE, VW_UP, VB_UP, VW_DOWN, VB_DOWN,
    V_NORM_M, VW_MERGE1, VB_MERGE1, VW_MERGE2, VB_MERGE2,
};

#define VISION "vision_config."

static const struct dim_row dims[] = {
    {.dim = LAYERS,     .key = "num_hidden_layers"},
    {.dim = HIDDEN,     .key = "hidden_size"},
    {.dim = HEADS,      .key = "num_attention_heads"},
    {.dim = KV_HEADS,   .key = "num_key_value_heads"},
    {.dim = HEAD_DIM,   .key = "head_dim", .quotient_of = {HIDDEN, HEADS}},
    {.dim = HALF_DIM,   .quotient_of = {HEAD_DIM}, .divisor = 2},
    {.dim = Q_OUT,      .product_of = {HEADS, HEAD_DIM}},
    {.dim = KV_OUT,     .product_of = {KV_HEADS, HEAD_DIM}},
    {.dim = QK_OUT,     .sum_of = {Q_OUT, KV_OUT}},
    {.dim = QKV_OUT,    .sum_of = {QK_OUT, KV_OUT}},
    {.dim = FFN,        .key = "intermediate_size"},
    {.dim = VOCAB,      .key = "vocab_size"},
    {.dim = V_BLOCKS,   .key = VISION "depth"},
    {.dim = V_HIDDEN,   .key = VISION "hidden_size"},
    {.dim = V_HEADS,    .key = VISION "num_heads"},
    {.dim = V_HEAD_DIM, .quotient_of = {V_HIDDEN, V_HEADS}},
    {.dim = V_HALF_DIM, .quotient_of = {V_HEAD_DIM}, .divisor = 2},
    {.dim = V_KV,       .factor = 2, .product_of = {V_HIDDEN}},
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

static const struct weight_row weights[] = {
    {EMBED,      ONCE,       VOCAB,    HIDDEN,     NO_WEIGHT},
    {FINAL_NORM, ONCE,       HIDDEN,   NO_DIM,     NO_WEIGHT},
    {HEAD,       ONCE,       VOCAB,    HIDDEN,     EMBED},
    {ATTN_NORM,  EACH_LAYER, HIDDEN,   NO_DIM,     NO_WEIGHT},
    {W_QKV,      EACH_LAYER, QKV_OUT,  HIDDEN,     NO_WEIGHT},
    {B_QKV,      EACH_LAYER, QKV_OUT,  NO_DIM,     NO_WEIGHT},
    {W_O,        EACH_LAYER, HIDDEN,   Q_OUT,      NO_WEIGHT},
    {FFN_NORM,   EACH_LAYER, HIDDEN,   NO_DIM,     NO_WEIGHT},
    {W_GATE,     EACH_LAYER, FFN,      HIDDEN,     NO_WEIGHT},
    {W_UP,       EACH_LAYER, FFN,      HIDDEN,     NO_WEIGHT},
    {W_DOWN,     EACH_LAYER, HIDDEN,   FFN,        NO_WEIGHT},
    {VW_PATCH,   ONCE,       V_HIDDEN, V_PATCH_IN, NO_WEIGHT},
    {V_NORM1,    EACH_BLOCK, V_HIDDEN, NO_DIM,     NO_WEIGHT},
    {VW_Q,       EACH_BLOCK, V_HIDDEN, V_HIDDEN,   NO_WEIGHT},
    {VB_Q,       EACH_BLOCK, V_HIDDEN, NO_DIM,     NO_WEIGHT},
    {VW_KV,      EACH_BLOCK, V_KV,     V_HIDDEN,   NO_WEIGHT},
    {VB_KV,      EACH_BLOCK, V_KV,     NO_DIM,     NO_WEIGHT},
    {VW_O,       EACH_BLOCK, V_HIDDEN, V_HIDDEN,   NO_WEIGHT},
    {VB_O,       EACH_BLOCK, V_HIDDEN, NO_DIM,     NO_WEIGHT},
    {V_NORM2,    EACH_BLOCK, V_HIDDEN, NO_DIM,     NO_WEIGHT},
    {VW_GATE,    EACH_BLOCK, V_FFN,    V_HIDDEN,   NO_WEIGHT},
    {VB_GATE,    EACH_BLOCK, V_FFN,    NO_DIM,     NO_WEIGHT},
    {VW_UP,      EACH_BLOCK, V_FFN,    V_HIDDEN,   NO_WEIGHT},
    {VB_UP,      EACH_BLOCK, V_FFN,    NO_DIM,     NO_WEIGHT},
    {VW_DOWN,    EACH_BLOCK, V_HIDDEN, V_FFN,      NO_WEIGHT},
    {VB_DOWN,    EACH_BLOCK, V_HIDDEN, NO_DIM,     NO_WEIGHT},
    {V_NORM_M,   ONCE,       V_HIDDEN, NO_DIM,     NO_WEIGHT},
    {VW_MERGE1,  ONCE,       V_MERGED, V_MERGED,   NO_WEIGHT},
    {VB_MERGE1,  ONCE,       V_MERGED, NO_DIM,     NO_WEIGHT},
    {VW_MERGE2,  ONCE,       V_OUT,    V_MERGED,   NO_WEIGHT},
    {VB_MERGE2,  ONCE,       V_OUT,    NO_DIM,     NO_WEIGHT},
    {NO_WEIGHT,  ONCE,       NO_DIM,   NO_DIM,     NO_WEIGHT},
};

#define LAYER "model.layers.%d."
#define BLOCK "visual.blocks.%d."
#define TENSOR(tensor, times, id, ...) {.name = tensor, .repeat = times, .slot = id, .shape = {__VA_ARGS__}}
#define TENSOR_AT(tensor, times, id, row, ...) \
    {.name = tensor, .repeat = times, .slot = id, .at = row, .shape = {__VA_ARGS__}}

/* The files' view: 33 rows are the 729 tensors of the 7B. */
static const struct tensor_row tensors[] = {
    TENSOR("model.embed_tokens.weight", ONCE, EMBED, VOCAB, HIDDEN),
    TENSOR("model.norm.weight", ONCE, FINAL_NORM, HIDDEN),
    {.name = "lm_head.weight", .slot = HEAD, .shape = {VOCAB, HIDDEN}, .presence = ABSENT_IF_TIED},
    TENSOR(LAYER "input_layernorm.weight", EACH_LAYER, ATTN_NORM, HIDDEN),
    TENSOR(LAYER "self_attn.q_proj.weight", EACH_LAYER, W_QKV, Q_OUT, HIDDEN),
    TENSOR(LAYER "self_attn.q_proj.bias", EACH_LAYER, B_QKV, Q_OUT),
    TENSOR_AT(LAYER "self_attn.k_proj.weight", EACH_LAYER, W_QKV, Q_OUT, KV_OUT, HIDDEN),
    TENSOR_AT(LAYER "self_attn.k_proj.bias", EACH_LAYER, B_QKV, Q_OUT, KV_OUT),
    TENSOR_AT(LAYER "self_attn.v_proj.weight", EACH_LAYER, W_QKV, QK_OUT, KV_OUT, HIDDEN),
    TENSOR_AT(LAYER "self_attn.v_proj.bias", EACH_LAYER, B_QKV, QK_OUT, KV_OUT),
    TENSOR(LAYER "self_attn.o_proj.weight", EACH_LAYER, W_O, HIDDEN, Q_OUT),
    TENSOR(LAYER "post_attention_layernorm.weight", EACH_LAYER, FFN_NORM, HIDDEN),
    TENSOR(LAYER "mlp.gate_proj.weight", EACH_LAYER, W_GATE, FFN, HIDDEN),
    TENSOR(LAYER "mlp.up_proj.weight", EACH_LAYER, W_UP, FFN, HIDDEN),
    TENSOR(LAYER "mlp.down_proj.weight", EACH_LAYER, W_DOWN, HIDDEN, FFN),

    TENSOR("visual.patch_embed.proj.weight", ONCE, VW_PATCH, V_HIDDEN, V_CHANNELS, V_FRAMES, V_PATCH, V_PATCH),
    TENSOR(BLOCK "norm1.weight", EACH_BLOCK, V_NORM1, V_HIDDEN),
    {.name = BLOCK "attn.qkv.weight", .repeat = EACH_BLOCK, .slot = VW_Q, .split = V_HIDDEN, .rest_slot = VW_KV,
     .shape = {V_QKV, V_HIDDEN}},
    {.name = BLOCK "attn.qkv.bias", .repeat = EACH_BLOCK, .slot = VB_Q, .split = V_HIDDEN, .rest_slot = VB_KV,
     .shape = {V_QKV}},
    TENSOR(BLOCK "attn.proj.weight", EACH_BLOCK, VW_O, V_HIDDEN, V_HIDDEN),
    TENSOR(BLOCK "attn.proj.bias", EACH_BLOCK, VB_O, V_HIDDEN),
    TENSOR(BLOCK "norm2.weight", EACH_BLOCK, V_NORM2, V_HIDDEN),
    TENSOR(BLOCK "mlp.gate_proj.weight", EACH_BLOCK, VW_GATE, V_FFN, V_HIDDEN),
    TENSOR(BLOCK "mlp.gate_proj.bias", EACH_BLOCK, VB_GATE, V_FFN),
    TENSOR(BLOCK "mlp.up_proj.weight", EACH_BLOCK, VW_UP, V_FFN, V_HIDDEN),
    TENSOR(BLOCK "mlp.up_proj.bias", EACH_BLOCK, VB_UP, V_FFN),
    TENSOR(BLOCK "mlp.down_proj.weight", EACH_BLOCK, VW_DOWN, V_HIDDEN, V_FFN),
    TENSOR(BLOCK "mlp.down_proj.bias", EACH_BLOCK, VB_DOWN, V_HIDDEN),
    TENSOR("visual.merger.ln_q.weight", ONCE, V_NORM_M, V_HIDDEN),
    TENSOR("visual.merger.mlp.0.weight", ONCE, VW_MERGE1, V_MERGED, V_MERGED),
    TENSOR("visual.merger.mlp.0.bias", ONCE, VB_MERGE1, V_MERGED),
    TENSOR("visual.merger.mlp.2.weight", ONCE, VW_MERGE2, V_OUT, V_MERGED),
    TENSOR("visual.merger.mlp.2.bias", ONCE, VB_MERGE2, V_OUT),
    {0},
};

/* What transformers 5 writes, and files made from its memory. */
static const struct prefix_row prefixes[] = {
    {"model.language_model.", "model."},
    {"model.visual.", "visual."},
    {0},
};

static const char *const ignored_suffixes[] = {"rotary_emb.inv_freq", "rotary_pos_emb.inv_freq", 0};

/* One computation under the names that it had. */
static const char *const image_processors[] = {
    "Qwen2VLImageProcessor", "Qwen2VLImageProcessorFast", "Qwen2_5_VLImageProcessor", 0,
};

static const struct buffer_row buffers[] = {
    {X,        F32,      {TOKENS, HIDDEN},     NO_BUFFER, NO_DIM}, /* the residual stream */
    {NORMED,   ACT,      {TOKENS, HIDDEN},     NO_BUFFER, NO_DIM},
    {QKV,      F32,      {TOKENS, QKV_OUT},    NO_BUFFER, NO_DIM},
    {QK,       VIEW,     {TOKENS, QK_OUT},     QKV,       NO_DIM}, /* what is rotated */
    {Q,        VIEW,     {TOKENS, Q_OUT},      QKV,       NO_DIM},
    {K,        VIEW,     {TOKENS, KV_OUT},     QKV,       Q_OUT},
    {V,        VIEW,     {TOKENS, KV_OUT},     QKV,       QK_OUT},
    {COS,      F32,      {TOKENS, HALF_DIM},   NO_BUFFER, NO_DIM},
    {SIN,      F32,      {TOKENS, HALF_DIM},   NO_BUFFER, NO_DIM},
    {ATTENDED, ACT,      {TOKENS, Q_OUT},      NO_BUFFER, NO_DIM},
    {GATED,    ACT,      {TOKENS, FFN},        NO_BUFFER, NO_DIM},
    {PICKED,   ACT,      {LOGIT_ROWS, HIDDEN}, NO_BUFFER, NO_DIM},
    {LOGITS,   EXTERNAL, {LOGIT_ROWS, VOCAB},  NO_BUFFER, NO_DIM},

    /* Only the residual stream (and keys and values) have a row for every patch. */
    {VX,        STATE, {PATCHES, V_HIDDEN},      NO_BUFFER, NO_DIM},
    {VPIXELS,   ACT,   {TILE_ROWS, V_PATCH_IN},  NO_BUFFER, NO_DIM},
    {VNORMED,   ACT,   {TILE_ROWS, V_HIDDEN},    NO_BUFFER, NO_DIM},
    {VGROUPED,  VIEW,  {TILE_GROUPS, V_MERGED},  VNORMED,   NO_DIM}, /* the patches of a merged token side by side */
    {VQ,        F32,   {TILE_ROWS, V_HIDDEN},    NO_BUFFER, NO_DIM},
    {VKV,       F32,   {TILE_ROWS, V_KV},        NO_BUFFER, NO_DIM},
    {VK,        VIEW,  {TILE_ROWS, V_HIDDEN},    VKV,       NO_DIM},
    {VV,        VIEW,  {TILE_ROWS, V_HIDDEN},    VKV,       V_HIDDEN},
    {VCOS,      F32,   {TILE_ROWS, V_HALF_DIM},  NO_BUFFER, NO_DIM},
    {VSIN,      F32,   {TILE_ROWS, V_HALF_DIM},  NO_BUFFER, NO_DIM},
    {VATTENDED, ACT,   {TILE_ROWS, V_HIDDEN},    NO_BUFFER, NO_DIM},
    {VGATED,    ACT,   {TILE_ROWS, V_FFN},       NO_BUFFER, NO_DIM},
    {VMIXED,    F32,   {TILE_GROUPS, V_MERGED},  NO_BUFFER, NO_DIM},
    {VACTIVE,   ACT,   {TILE_GROUPS, V_MERGED},  NO_BUFFER, NO_DIM},
    {VFEATURES, ACT,   {TILE_GROUPS, V_OUT},     NO_BUFFER, NO_DIM},
    {NO_BUFFER, ACT,   {NO_DIM},                 NO_BUFFER, NO_DIM},
};

static const struct step_row begin_steps[] = {
    {OP_EMBED,        X,   {NO_BUFFER}, {EMBED},     {NO_WEIGHT}},
    {OP_ROTARY_TABLE, COS, {SIN},       {NO_WEIGHT}, {NO_WEIGHT}},
    STEPS_END,
};

static const struct step_row layer_steps[] = {
    {OP_RMSNORM,       NORMED,    {X},        {ATTN_NORM},    {NO_WEIGHT}},
    {OP_LINEAR,        QKV,       {NORMED},   {W_QKV},        {B_QKV}},
    {OP_ROTARY,        QK,        {COS, SIN}, {NO_WEIGHT},    {NO_WEIGHT}},
    {OP_KV_WRITE,      NO_BUFFER, {K, V},     {NO_WEIGHT},    {NO_WEIGHT}},
    {OP_ATTENTION,     ATTENDED,  {Q},        {NO_WEIGHT},    {NO_WEIGHT}},
    {OP_LINEAR_ADD,    X,         {ATTENDED}, {W_O},          {NO_WEIGHT}},
    {OP_RMSNORM,       NORMED,    {X},        {FFN_NORM},     {NO_WEIGHT}},
    {OP_LINEAR_SWIGLU, GATED,     {NORMED},   {W_GATE, W_UP}, {NO_WEIGHT}},
    {OP_LINEAR_ADD,    X,         {GATED},    {W_DOWN},       {NO_WEIGHT}},
    STEPS_END,
};

static const struct step_row end_steps[] = {
    {OP_RMSNORM, PICKED, {X},      {FINAL_NORM}, {NO_WEIGHT}},
    {OP_LINEAR,  LOGITS, {PICKED}, {HEAD},       {NO_WEIGHT}},
    STEPS_END,
};

static const struct step_row patch_steps[] = {
    {OP_PATCHIFY, VPIXELS, {NO_BUFFER}, {NO_WEIGHT}, {NO_WEIGHT}},
    {OP_LINEAR,   VX,      {VPIXELS},   {VW_PATCH},  {NO_WEIGHT}},
    STEPS_END,
};

static const struct step_row keys_steps[] = {
    {OP_ROTARY_TABLE, VCOS,      {VSIN},       {NO_WEIGHT}, {NO_WEIGHT}},
    {OP_RMSNORM,      VNORMED,   {VX},         {V_NORM1},   {NO_WEIGHT}},
    {OP_LINEAR,       VKV,       {VNORMED},    {VW_KV},     {VB_KV}},
    {OP_ROTARY,       VK,        {VCOS, VSIN}, {NO_WEIGHT}, {NO_WEIGHT}},
    {OP_KV_WRITE,     NO_BUFFER, {VK, VV},     {NO_WEIGHT}, {NO_WEIGHT}},
    STEPS_END,
};

/* The queries are made here and not beside the keys: norming twice is cheaper than keeping them for every patch. */
static const struct step_row rest_steps[] = {
    {OP_ROTARY_TABLE,  VCOS,      {VSIN},       {NO_WEIGHT},      {NO_WEIGHT}},
    {OP_RMSNORM,       VNORMED,   {VX},         {V_NORM1},        {NO_WEIGHT}},
    {OP_LINEAR,        VQ,        {VNORMED},    {VW_Q},           {VB_Q}},
    {OP_ROTARY,        VQ,        {VCOS, VSIN}, {NO_WEIGHT},      {NO_WEIGHT}},
    {OP_ATTENTION,     VATTENDED, {VQ},         {NO_WEIGHT},      {NO_WEIGHT}},
    {OP_LINEAR_ADD,    VX,        {VATTENDED},  {VW_O},           {VB_O}},
    {OP_RMSNORM,       VNORMED,   {VX},         {V_NORM2},        {NO_WEIGHT}},
    {OP_LINEAR_SWIGLU, VGATED,    {VNORMED},    {VW_GATE, VW_UP}, {VB_GATE, VB_UP}},
    {OP_LINEAR_ADD,    VX,        {VGATED},     {VW_DOWN},        {VB_DOWN}},
    STEPS_END,
};

static const struct step_row merge_steps[] = {
    {OP_RMSNORM,      VNORMED,   {VX},        {V_NORM_M},  {NO_WEIGHT}},
    {OP_LINEAR,       VMIXED,    {VGROUPED},  {VW_MERGE1}, {VB_MERGE1}},
    {OP_GELU_ERF,     VACTIVE,   {VMIXED},    {NO_WEIGHT}, {NO_WEIGHT}},
    {OP_LINEAR,       VFEATURES, {VACTIVE},   {VW_MERGE2}, {VB_MERGE2}},
    {OP_SCATTER_ROWS, NO_BUFFER, {VFEATURES}, {NO_WEIGHT}, {NO_WEIGHT}},
    STEPS_END,
};

const struct arch arch_qwen2_5_vl = {
    .hf_name = "Qwen2_5_VLForConditionalGeneration",
    .dims = dims,
    .weights = weights,
    .tensors = tensors,
    .prefixes = prefixes,
    .ignored_suffixes = ignored_suffixes,
    .image_processors = image_processors,
    .full_blocks = 1U << 7 | 1U << 15 | 1U << 23 | 1U << 31,
    .buffers = buffers,
    .text_heads = {HEADS, KV_HEADS, HEAD_DIM, HALF_DIM, Q_OUT, KV_OUT},
    .vision_heads = {V_HEADS, V_HEADS, V_HEAD_DIM, V_HALF_DIM, V_HIDDEN, V_HIDDEN},
    .begin_steps = begin_steps,
    .layer_steps = layer_steps,
    .end_steps = end_steps,
    .patch_steps = patch_steps,
    .keys_steps = keys_steps,
    .rest_steps = rest_steps,
    .merge_steps = merge_steps,
};
