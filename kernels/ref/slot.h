/* slot: where a token's key and value lie, element by element: the layout of struct kv_store, written once for the
 * oracle. */
#ifndef KERNELS_REF_SLOT_H
#define KERNELS_REF_SLOT_H

#include "kernels/kernels.h"

/* A token of a sequence: the page's K (V lies kv_store_k_bytes behind) and its slot in it. */
struct slot {
    unsigned char *page;
    uint32_t token; /* 0 .. KV_PAGE_TOKENS-1 */
};

static inline struct slot slot_of(const struct kv_store *store, const struct kv_sequence *sequence, uint32_t index)
{
    uint32_t page = index / KV_PAGE_TOKENS;
    size_t number = sequence->pages != NULL ? sequence->pages[page] : page;

    return (struct slot){(unsigned char *)store->data + number * store->page_stride_bytes, index % KV_PAGE_TOKENS};
}

/* Element numbers inside the page's K and V. */
static inline size_t slot_k(const struct kv_store *store, uint32_t head, uint32_t token, uint32_t i)
{
    size_t first = (size_t)head * store->head_dim * KV_PAGE_TOKENS;

    return store->type == TYPE_F32 ? first + (size_t)i * KV_PAGE_TOKENS + token
                                   : first + (size_t)(i / 2) * KV_PAGE_TOKENS * 2 + (size_t)token * 2 + i % 2;
}

static inline size_t slot_v(const struct kv_store *store, uint32_t head, uint32_t token, uint32_t i)
{
    size_t lanes = (store->head_dim + 15u) / 16 * 16;
    size_t first = head * lanes * KV_PAGE_TOKENS;

    return store->type == TYPE_F32 ? first + token * lanes + i
                                   : first + (token / 2) * lanes * 2 + (size_t)i * 2 + token % 2;
}

#endif
