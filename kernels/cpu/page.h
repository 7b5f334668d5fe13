/* page: addresses of keys and values in pages of struct kv_store. */
#ifndef KERNELS_CPU_PAGE_H
#define KERNELS_CPU_PAGE_H

#include "kernels/kernels.h"

/* D rounded up to whole lanes: a row of V. */
static inline uint32_t page_lanes(const struct kv_store *store)
{
    return (store->head_dim + PACK_OUT - 1) / PACK_OUT * PACK_OUT;
}

/* Page `page` of the sequence: K of head 0. */
static inline unsigned char *page_of(const struct kv_store *store, const struct kv_sequence *sequence, uint32_t page)
{
    size_t number = sequence->pages != NULL ? sequence->pages[page] : page;

    return (unsigned char *)store->data + number * store->page_stride_bytes;
}

/* From a page to its K and V of a head. */
static inline size_t page_k_offset(const struct kv_store *store, uint32_t kv_head)
{
    return (size_t)kv_head * store->head_dim * KV_PAGE_TOKENS * kernel_type_bytes(store->type);
}

static inline size_t page_v_offset(const struct kv_store *store, uint32_t kv_head)
{
    return kv_store_k_bytes(store->kv_heads, store->head_dim, store->type) +
           (size_t)kv_head * page_lanes(store) * KV_PAGE_TOKENS * kernel_type_bytes(store->type);
}

#endif
