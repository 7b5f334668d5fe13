/* kv_write: each row's key becomes a lane of its page's K, its value a row (or half a row of pairs) of V. */
#include "kernels/bf16.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/page.h"

static void write_f32(const struct kv_store *store, unsigned char *page, uint32_t token, const float *k, const float *v)
{
    uint32_t dim = store->head_dim;

    for (uint32_t h = 0; h < store->kv_heads; h++) {
        float *k_out = (float *)(void *)(page + page_k_offset(store, h)) + token;
        float *v_out = (float *)(void *)(page + page_v_offset(store, h)) + (size_t)token * page_lanes(store);
        for (uint32_t i = 0; i < dim; i++) {
            k_out[(size_t)i * KV_PAGE_TOKENS] = k[(size_t)h * dim + i];
            v_out[i] = v[(size_t)h * dim + i];
        }
    }
}

static void write_bf16(const struct kv_store *store, unsigned char *page, uint32_t token, const float *k,
                       const float *v)
{
    uint32_t dim = store->head_dim;
    uint16_t narrow_k[HEAD_DIM_MAX], narrow_v[HEAD_DIM_MAX];

    for (uint32_t h = 0; h < store->kv_heads; h++) {
        uint16_t *k_out = (uint16_t *)(void *)(page + page_k_offset(store, h)) + (size_t)token * 2;
        uint16_t *v_out = (uint16_t *)(void *)(page + page_v_offset(store, h));
        v_out += (size_t)(token / 2) * page_lanes(store) * 2 + token % 2;
        cpu_kernels->narrow(narrow_k, k + (size_t)h * dim, dim);
        cpu_kernels->narrow(narrow_v, v + (size_t)h * dim, dim);
        for (uint32_t i = 0; i < dim; i++) {
            k_out[(size_t)(i / 2) * KV_PAGE_TOKENS * 2 + i % 2] = narrow_k[i];
            v_out[(size_t)i * 2] = narrow_v[i];
        }
    }
}

static void write_rows(const void *arguments, uint32_t first, uint32_t end)
{
    const struct kv_write_args *args = arguments;
    const struct kv_store *store = args->store;

    for (size_t r = first; r < end; r++) {
        const struct kv_row *place = &args->places[r];
        unsigned char *page = page_of(store, &args->sequences[place->sequence], place->index / KV_PAGE_TOKENS);
        const float *k = args->k + r * args->k_stride, *v = args->v + r * args->v_stride;
        if (store->type == TYPE_F32) {
            write_f32(store, page, place->index % KV_PAGE_TOKENS, k, v);
        } else {
            write_bf16(store, page, place->index % KV_PAGE_TOKENS, k, v);
        }
    }
}

void cpu_kv_write(const void *arguments, struct team *team, void *workspace)
{
    const struct kv_write_args *args = arguments;

    (void)workspace;
    cpu_rows(team, write_rows, args, args->rows, (uint64_t)args->store->kv_heads * args->store->head_dim * 4);
}
