/* kv_write, the oracle. */
#include "kernels/implementations.h"
#include "kernels/ref/operand.h"
#include "kernels/ref/slot.h"

void ref_kv_write(const void *arguments)
{
    const struct kv_write_args *args = arguments;
    const struct kv_store *store = args->store;
    size_t k_bytes = kv_store_k_bytes(store->kv_heads, store->head_dim, store->type);

    for (size_t r = 0; r < args->rows; r++) {
        const struct kv_row *place = &args->places[r];
        struct slot slot = slot_of(store, &args->sequences[place->sequence], place->index);
        for (uint32_t h = 0; h < store->kv_heads; h++) {
            for (uint32_t i = 0; i < store->head_dim; i++) {
                size_t column = (size_t)h * store->head_dim + i;
                operand_put(slot.page, store->type, slot_k(store, h, slot.token, i),
                            args->k[r * args->k_stride + column]);
                operand_put(slot.page + k_bytes, store->type, slot_v(store, h, slot.token, i),
                            args->v[r * args->v_stride + column]);
            }
        }
    }
}
