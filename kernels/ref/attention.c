/* attention, the oracle: two passes over the keys of each row and head, in double; no softmax state, no blocks.
 *
 * The scores are computed twice (for the maximum and the sum, then for the output) so that no memory for them is
 * needed.
 */
#include "kernels/implementations.h"
#include "kernels/ref/operand.h"
#include "kernels/ref/slot.h"

#include <math.h>

static double score(const struct attention_args *args, size_t row, uint32_t head, uint32_t key)
{
    const struct kv_store *store = args->store;
    uint32_t kv_head = head / (args->heads / store->kv_heads);
    struct slot slot = slot_of(store, &args->sequences[args->places[row].sequence], key);
    double sum = 0;

    for (uint32_t i = 0; i < store->head_dim; i++) {
        double q = operand_get(args->q, args->q_type, row * args->q_stride + (size_t)head * store->head_dim + i);
        sum +=
            operand_round(q, store->type) * operand_get(slot.page, store->type, slot_k(store, kv_head, slot.token, i));
    }
    return sum * args->scale;
}

static void attend(const struct attention_args *args, size_t row, uint32_t head)
{
    const struct kv_store *store = args->store;
    const struct kv_row *place = &args->places[row];
    uint32_t kv_head = head / (args->heads / store->kv_heads), dim = store->head_dim;
    size_t k_bytes = kv_store_k_bytes(store->kv_heads, dim, store->type);
    double max = -INFINITY, total = 0, out[HEAD_DIM_MAX] = {0};

    for (uint32_t key = place->key_first; key < place->key_end; key++) {
        max = fmax(max, score(args, row, head, key));
    }
    for (uint32_t key = place->key_first; key < place->key_end; key++) {
        struct slot slot = slot_of(store, &args->sequences[place->sequence], key);
        double p = exp(score(args, row, head, key) - max);
        total += p;
        for (uint32_t i = 0; i < dim; i++) {
            out[i] += p * operand_get(slot.page + k_bytes, store->type, slot_v(store, kv_head, slot.token, i));
        }
    }
    for (uint32_t i = 0; i < dim; i++) {
        operand_put(args->out, store->type, (row * args->heads + head) * dim + i, out[i] / total);
    }
}

void ref_attention(const void *arguments)
{
    const struct attention_args *args = arguments;

    for (size_t r = 0; r < args->rows; r++) {
        for (uint32_t h = 0; h < args->heads; h++) {
            attend(args, r, h);
        }
    }
}
