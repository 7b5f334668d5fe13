/* prefix: the cache of computed KV pages, by the exact tokens and pictures that they hold.
 *
 * Always true between calls: children of one node differ in their first page of tokens, none is a beginning of another
 * (a shorter one is dropped when nobody holds it); the list of evictable nodes has every node behind its descendants.
 */
#include "engine/prefix.h"

#include "pools/pools.h"

#include <assert.h>
#include <string.h>

static struct prefix_node *node_at(uint32_t node)
{
    assert(node < pools_capacity(POOL_PREFIX));
    return (struct prefix_node *)((unsigned char *)pools_base(POOL_PREFIX) + node * pools_stride_bytes(POOL_PREFIX));
}

void prefix_open(struct prefix *prefix, struct kv *kv, bool is_on)
{
    assert(kv != NULL);
    assert(!is_on || pools_element_bytes(POOL_PREFIX) >= sizeof(struct prefix_node));
    *prefix = (struct prefix){.kv = kv, .root_child = KV_NONE, .oldest = KV_NONE, .newest = KV_NONE, .is_on = is_on};
}

static void list_append(struct prefix *prefix, uint32_t index)
{
    struct prefix_node *node = node_at(index);

    node->older = prefix->newest;
    node->newer = KV_NONE;
    if (prefix->newest == KV_NONE) {
        prefix->oldest = index;
    } else {
        node_at(prefix->newest)->newer = index;
    }
    prefix->newest = index;
    pools_cache(POOL_PREFIX, pools_held(POOL_PREFIX, index));
}

static void list_remove(struct prefix *prefix, uint32_t index)
{
    const struct prefix_node *node = node_at(index);

    if (node->older == KV_NONE) {
        assert(prefix->oldest == index);
        prefix->oldest = node->newer;
    } else {
        node_at(node->older)->newer = node->newer;
    }
    if (node->newer == KV_NONE) {
        assert(prefix->newest == index);
        prefix->newest = node->older;
    } else {
        node_at(node->newer)->older = node->older;
    }
    pools_uncache(POOL_PREFIX, pools_held(POOL_PREFIX, index));
}

static uint32_t *children_of(struct prefix *prefix, uint32_t parent)
{
    return parent == KV_NONE ? &prefix->root_child : &node_at(parent)->first_child;
}

static void link_child(struct prefix *prefix, uint32_t parent, uint32_t index)
{
    uint32_t *first = children_of(prefix, parent);
    struct prefix_node *node = node_at(index);

    node->parent = parent;
    node->previous_sibling = KV_NONE;
    node->next_sibling = *first;
    if (*first != KV_NONE) {
        node_at(*first)->previous_sibling = index;
    }
    *first = index;
}

static void unlink_child(struct prefix *prefix, uint32_t index)
{
    const struct prefix_node *node = node_at(index);

    if (node->previous_sibling == KV_NONE) {
        assert(*children_of(prefix, node->parent) == index);
        *children_of(prefix, node->parent) = node->next_sibling;
    } else {
        node_at(node->previous_sibling)->next_sibling = node->next_sibling;
    }
    if (node->next_sibling != KV_NONE) {
        node_at(node->next_sibling)->previous_sibling = node->previous_sibling;
    }
}

/* Takes an evictable leaf out of the tree; its page is free. */
static void drop_node(struct prefix *prefix, uint32_t index)
{
    const struct prefix_node *node = node_at(index);

    assert(node->first_child == KV_NONE);
    assert(prefix->kv->pages[node->page].holders == 0);
    list_remove(prefix, index);
    unlink_child(prefix, index);
    kv_evict(prefix->kv, node->page);
    pools_put(POOL_PREFIX, pools_held(POOL_PREFIX, index));
}

/* The pictures that overlap tokens first .. first+count-1, as parts. Returns how many; *count shrinks to the tokens
 * before the first part that finds no room. */
static uint32_t cut_pictures(const struct prefix_key *key, uint32_t first, uint32_t *count,
                             struct prefix_picture parts[PREFIX_PICTURES_MAX])
{
    uint32_t part_count = 0;

    for (uint32_t i = 0; i < key->picture_count; i++) {
        const struct picture *picture = &key->pictures[i];
        uint32_t begin = picture->first_token, end = begin + picture->token_count;
        if (end <= first) {
            continue;
        }
        if (begin >= first + *count) {
            break;
        }
        uint32_t at = begin > first ? begin - first : 0;
        if (part_count == PREFIX_PICTURES_MAX) {
            *count = at;
            break;
        }
        struct prefix_picture *part = &parts[part_count++];
        memcpy(part->digest, picture->digest, sizeof part->digest);
        part->grid_h = picture->grid_h;
        part->grid_w = picture->grid_w;
        part->at = at;
        part->offset = first + at - begin;
    }
    return part_count;
}

static bool parts_are_equal(const struct prefix_picture *a, const struct prefix_picture *b)
{
    return a->at == b->at && a->offset == b->offset && a->grid_h == b->grid_h && a->grid_w == b->grid_w &&
           memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

/* Tokens at the beginning of `node` that equal ids[0 .. count-1] with these pictures in them. */
static uint32_t equal_tokens(const struct prefix_node *node, const int32_t *ids, uint32_t count,
                             const struct prefix_picture *parts, uint32_t part_count)
{
    uint32_t limit = node->token_count < count ? node->token_count : count;
    uint32_t equal = 0;

    while (equal < limit && node->ids[equal] == ids[equal]) {
        equal++;
    }
    uint32_t most = node->picture_count > part_count ? node->picture_count : part_count;
    for (uint32_t i = 0; i < most; i++) {
        const struct prefix_picture *a = i < node->picture_count ? &node->pictures[i] : NULL;
        const struct prefix_picture *b = i < part_count ? &parts[i] : NULL;
        if (a != NULL && b != NULL && parts_are_equal(a, b)) {
            continue;
        }
        equal = a != NULL && a->at < equal ? a->at : equal;
        equal = b != NULL && b->at < equal ? b->at : equal;
        break;
    }
    return equal;
}

/* The child of `parent` that has most in common with the tokens, and how many. */
static uint32_t best_child(struct prefix *prefix, uint32_t parent, const struct prefix_key *key, uint32_t first,
                           uint32_t count, uint32_t *equal_count)
{
    struct prefix_picture parts[PREFIX_PICTURES_MAX];
    uint32_t part_count = cut_pictures(key, first, &count, parts);
    uint32_t best = KV_NONE;

    *equal_count = 0;
    for (uint32_t child = *children_of(prefix, parent); child != KV_NONE; child = node_at(child)->next_sibling) {
        uint32_t equal = equal_tokens(node_at(child), key->ids + first, count, parts, part_count);
        if (equal > *equal_count) {
            *equal_count = equal;
            best = child;
        }
    }
    return best;
}

void prefix_match(struct prefix *prefix, const struct prefix_key *key, uint32_t tokens_max, uint32_t *pages,
                  struct prefix_hit *hit)
{
    *hit = (struct prefix_hit){.node = KV_NONE, .partial_node = KV_NONE};
    tokens_max = tokens_max < key->count ? tokens_max : key->count;
    for (uint32_t first = 0; first < tokens_max; first += KV_PAGE_TOKENS) {
        uint32_t count = tokens_max - first < KV_PAGE_TOKENS ? tokens_max - first : KV_PAGE_TOKENS;
        uint32_t equal;
        uint32_t child = best_child(prefix, hit->node, key, first, count, &equal);
        if (child == KV_NONE) {
            return;
        }
        if (equal < KV_PAGE_TOKENS) {
            hit->partial_node = child;
            hit->partial_tokens = equal;
            return;
        }
        prefix_hold(prefix, node_at(child)->page);
        pages[hit->page_count++] = node_at(child)->page;
        hit->node = child;
    }
}

/* Drops children of `parent` that nobody holds and that are a beginning of `index`. */
static void drop_beginnings(struct prefix *prefix, uint32_t parent, uint32_t index)
{
    const struct prefix_node *node = node_at(index);

    for (uint32_t child = *children_of(prefix, parent), next; child != KV_NONE; child = next) {
        const struct prefix_node *shorter = node_at(child);
        next = shorter->next_sibling;
        if (child == index || shorter->token_count >= node->token_count ||
            prefix->kv->pages[shorter->page].holders > 0) {
            continue;
        }
        if (equal_tokens(shorter, node->ids, node->token_count, node->pictures, node->picture_count) ==
            shorter->token_count) {
            drop_node(prefix, child);
        }
    }
}

/* A new node for the page. KV_NONE when the pool or the page's parts refuse. */
static uint32_t make_node(const struct prefix_key *key, uint32_t first, uint32_t token_count, uint32_t page)
{
    struct prefix_picture parts[PREFIX_PICTURES_MAX];
    uint32_t fitting_count = token_count;
    uint32_t part_count = cut_pictures(key, first, &fitting_count, parts);

    if (fitting_count < token_count) {
        return KV_NONE;
    }
    slab_handle handle = pools_get(POOL_PREFIX);
    if (!slab_is_some(handle)) {
        return KV_NONE;
    }
    struct prefix_node *node = node_at(handle.index);
    *node = (struct prefix_node){.page = page,
                                 .first_child = KV_NONE,
                                 .older = KV_NONE,
                                 .newer = KV_NONE,
                                 .token_count = token_count,
                                 .picture_count = part_count};
    memcpy(node->ids, key->ids + first, token_count * sizeof node->ids[0]);
    memcpy(node->pictures, parts, part_count * sizeof parts[0]);
    return handle.index;
}

enum prefix_outcome prefix_insert(struct prefix *prefix, const struct prefix_key *key, uint32_t first,
                                  uint32_t token_count, uint32_t parent, uint32_t *page, uint32_t *node)
{
    uint32_t equal;

    assert(first % KV_PAGE_TOKENS == 0 && first + token_count <= key->count);
    assert(token_count > 0 && token_count <= KV_PAGE_TOKENS);
    assert(prefix->kv->pages[*page].holders == 1 && prefix->kv->pages[*page].node == KV_NONE);
    *node = KV_NONE;
    if (!prefix->is_on) {
        return PREFIX_REFUSED;
    }
    uint32_t child = best_child(prefix, parent, key, first, token_count, &equal);
    if (child != KV_NONE && equal == token_count) {
        /* The same tokens behind the same beginning: the same bits. Keeping one of the two leaves more for everybody.
         */
        kv_release(prefix->kv, *page);
        prefix_hold(prefix, node_at(child)->page);
        *page = node_at(child)->page;
        *node = child;
        return PREFIX_MERGED;
    }
    uint32_t made = make_node(key, first, token_count, *page);
    if (made == KV_NONE) {
        return PREFIX_REFUSED;
    }
    kv_keep(prefix->kv, *page, made);
    link_child(prefix, parent, made);
    drop_beginnings(prefix, parent, made);
    *node = made;
    return PREFIX_TAKEN;
}

void prefix_hold(struct prefix *prefix, uint32_t page)
{
    if (kv_hold(prefix->kv, page)) {
        list_remove(prefix, prefix->kv->pages[page].node);
    }
}

void prefix_release(struct prefix *prefix, uint32_t page)
{
    if (kv_release(prefix->kv, page)) {
        list_append(prefix, prefix->kv->pages[page].node);
    }
}

void prefix_release_list(struct prefix *prefix, const uint32_t *pages, uint32_t page_count)
{
    /* From the end, so that a path's end is evicted before its beginning. */
    for (uint32_t i = page_count; i > 0; i--) {
        prefix_release(prefix, pages[i - 1]);
    }
}

uint32_t prefix_take(struct prefix *prefix)
{
    if (prefix->kv->free_count == 0) {
        if (prefix->oldest == KV_NONE) {
            return KV_NONE;
        }
        drop_node(prefix, prefix->oldest);
        prefix->evicted_count++;
    }
    return kv_take(prefix->kv);
}

void prefix_flush(struct prefix *prefix)
{
    while (prefix->oldest != KV_NONE) {
        drop_node(prefix, prefix->oldest);
    }
    assert(prefix->newest == KV_NONE);
}

uint32_t prefix_page(uint32_t node)
{
    return node_at(node)->page;
}

/* Checks one node against its neighbours. */
static void check_node(const struct prefix *prefix, uint32_t index)
{
    const struct prefix_node *node = node_at(index);
    const struct kv_page *page = &prefix->kv->pages[node->page];

    assert(page->node == index && page->is_held == 1);
    assert(node->token_count == KV_PAGE_TOKENS || node->first_child == KV_NONE);
    for (uint32_t child = node->first_child; child != KV_NONE; child = node_at(child)->next_sibling) {
        assert(node_at(child)->parent == index);
        assert(prefix->kv->pages[node_at(child)->page].holders <= page->holders);
    }
}

void prefix_check(const struct prefix *prefix)
{
    uint32_t named_count = 0, listed_count = 0;

    for (uint32_t i = 0; i < prefix->kv->page_count; i++) {
        if (prefix->kv->pages[i].node != KV_NONE) {
            check_node(prefix, prefix->kv->pages[i].node);
            named_count++;
        }
    }
    for (uint32_t index = prefix->oldest; index != KV_NONE; index = node_at(index)->newer) {
        assert(prefix->kv->pages[node_at(index)->page].holders == 0);
        listed_count++;
    }
    assert(listed_count == prefix->kv->evictable_count);
    assert(named_count == pools_used(POOL_PREFIX) + pools_cached(POOL_PREFIX));
}
