/* sampling: from a row of logits to a token.
 *
 * A row of 152k logits is never sorted as a whole: a histogram over d = (largest - logit) / temperature gives counts
 * and sums of weights e^-d from the top; whole bins are kept or dropped, and only the bin in which the cut falls and
 * the bin that the noise points into are sorted. Weights are added up in double, in an order that depends on the row
 * alone.
 */
#include "engine/sampling.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum {
    BINS = 4096,
    BINS_A_NAT = 64, /* the last bin begins at d = 64: weights below 1.6e-28 */
    RADIX_BITS = 8,
    RADIX_SIZE = 1 << RADIX_BITS,
    LANES = 16,
    FEW = 48 /* entries that are sorted by insertion */
};

static const float GREEDY_TEMPERATURE = 1e-6f;

struct bin {
    double sum;
    uint32_t count;
};

/* A logit on its way through a sort: `key` ascends with d. */
struct candidate {
    uint32_t key;
    int32_t id;
};

struct sampling_work {
    struct bin bins[BINS];
    uint32_t radix_counts[RADIX_SIZE];
    uint32_t *seen_counts;     /* [vocab]: of the answer's ids; all zero between calls */
    struct candidate *entries; /* [vocab] */
    struct candidate *spare;   /* [vocab] */
};

/* What is kept: all bins before `edge`, and of its sorted entries the first edge_count. */
struct cut {
    uint32_t edge;
    uint32_t edge_count;
    double sum; /* of the weights kept */
};

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

uint64_t sampling_work_bytes(uint32_t vocab)
{
    return round_up(sizeof(struct sampling_work)) + round_up((uint64_t)vocab * sizeof(uint32_t)) +
           2 * round_up((uint64_t)vocab * sizeof(struct candidate));
}

static struct sampling_work *lay_work(void *memory, uint32_t vocab)
{
    struct sampling_work *work = memory;
    unsigned char *place = memory;

    assert((uintptr_t)memory % 64 == 0);
    place += round_up(sizeof *work);
    work->seen_counts = (void *)place;
    place += round_up((uint64_t)vocab * sizeof(uint32_t));
    work->entries = (void *)place;
    place += round_up((uint64_t)vocab * sizeof(struct candidate));
    work->spare = (void *)place;
    return work;
}

/* The finalizer of SplitMix64: a bijection whose output bits all depend on all input bits. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

double sampling_noise(uint64_t seed, uint32_t choice, uint32_t position)
{
    uint64_t counter = (uint64_t)choice << 32 | position;

    return (double)(mix(mix(seed) ^ mix(counter)) >> 11) * 0x1p-53;
}

/* A repetition penalty close to 0 carries a logit past what a float holds: the largest float stands for it. What the
 * model itself gave stays as it is, so that an infinity of its own is still found. */
static float repeat_less(float logit, float penalty)
{
    float scaled = logit < 0 ? logit * penalty : logit / penalty;

    return logit <= FLT_MAX && scaled > FLT_MAX ? FLT_MAX : scaled;
}

/* Penalties are applied at the first of several equal ids, from the counts; the second walk zeroes the counts again. */
static void penalize(const struct sampling_row *row, struct sampling_work *work)
{
    const struct sampling_params *params = row->params;
    const bool has_answer_part = params->frequency_penalty != 0 || params->presence_penalty != 0;
    const uint32_t done = UINT32_MAX;

    for (uint32_t i = 0; i < row->answer_count; i++) {
        assert(row->answer_ids[i] >= 0 && (uint32_t)row->answer_ids[i] < row->vocab);
        work->seen_counts[row->answer_ids[i]]++;
    }
    for (uint32_t i = 0; i < row->answer_count + row->prompt_count; i++) {
        int32_t id = i < row->answer_count ? row->answer_ids[i] : row->prompt_ids[i - row->answer_count];
        uint32_t count = work->seen_counts[id];
        float *logit = &row->logits[id];
        if (count == done) {
            continue;
        }
        work->seen_counts[id] = done;
        if (has_answer_part && count > 0) {
            *logit -= params->frequency_penalty * (float)count + params->presence_penalty;
        }
        *logit = repeat_less(*logit, params->repetition_penalty);
    }
    for (uint32_t i = 0; i < row->answer_count + row->prompt_count; i++) {
        work->seen_counts[i < row->answer_count ? row->answer_ids[i] : row->prompt_ids[i - row->answer_count]] = 0;
    }
}

/* Steps 1 to 3, and the ids that may not be chosen. */
static void adjust(const struct sampling_row *row, struct sampling_work *work)
{
    const struct sampling_params *params = row->params;

    if (params->frequency_penalty != 0 || params->presence_penalty != 0 || params->repetition_penalty != 1) {
        penalize(row, work);
    }
    for (uint32_t i = 0; i < params->bias_count; i++) {
        if (params->bias_ids[i] >= 0 && (uint32_t)params->bias_ids[i] < row->vocab) {
            row->logits[params->bias_ids[i]] += params->bias_values[i];
        }
    }
    for (uint32_t i = 0; i < row->masked_count; i++) {
        if (row->masked_ids[i] >= 0 && (uint32_t)row->masked_ids[i] < row->vocab) {
            row->logits[row->masked_ids[i]] = -INFINITY;
        }
    }
}

/* The lowest id of the largest logit. False if one is not a number or too large, or all are -infinity. In lanes, so
 * that the compiler takes several at a time: this is all there is to a greedy row. */
static bool find_largest(const float *logits, uint32_t count, uint32_t *largest)
{
    float lanes[LANES], most = -INFINITY;
    int32_t bad[LANES] = {0}, bad_count = 0;
    uint32_t i = 0;

    for (uint32_t k = 0; k < LANES; k++) {
        lanes[k] = -INFINITY;
    }
    for (; i + LANES <= count; i += LANES) {
        for (uint32_t k = 0; k < LANES; k++) {
            float logit = logits[i + k];
            lanes[k] = logit > lanes[k] ? logit : lanes[k];
            bad[k] |= !(logit <= FLT_MAX);
        }
    }
    for (; i < count; i++) {
        lanes[0] = logits[i] > lanes[0] ? logits[i] : lanes[0];
        bad[0] |= !(logits[i] <= FLT_MAX);
    }
    for (uint32_t k = 0; k < LANES; k++) {
        most = lanes[k] > most ? lanes[k] : most;
        bad_count += bad[k];
    }
    if (bad_count > 0 || most == -INFINITY) {
        return false;
    }
    *largest = 0;
    while (logits[*largest] != most) {
        (*largest)++;
    }
    assert(*largest < count);
    return true;
}

/* d of a logit: 0 for the largest, never -0 (its bits are a sort key). One expression: every user gets the same bits.
 */
static inline float distance(float largest, float logit, float temperature)
{
    return (largest - logit) / temperature + 0.0f;
}

static inline uint32_t bin_of(float d)
{
    return d < (float)(BINS - 1) / BINS_A_NAT ? (uint32_t)(d * BINS_A_NAT) : BINS - 1;
}

static inline double weight(float d)
{
    return (double)expf(-d);
}

static void fill_bins(struct bin *bins, const float *logits, uint32_t count, float largest, float temperature)
{
    memset(bins, 0, BINS * sizeof bins[0]);
    for (uint32_t i = 0; i < count; i++) {
        float d = distance(largest, logits[i], temperature);
        if (d < INFINITY) {
            struct bin *bin = &bins[bin_of(d)];
            bin->count++;
            bin->sum += weight(d);
        }
    }
}

/* Stable: ids ascend within equal keys when they did before. Returns where the sorted entries lie. */
static const struct candidate *sort_entries(struct sampling_work *work, uint32_t count)
{
    struct candidate *from = work->entries, *to = work->spare;

    if (count <= FEW) {
        for (uint32_t i = 1; i < count; i++) {
            struct candidate moved = from[i];
            uint32_t place = i;
            for (; place > 0 && from[place - 1].key > moved.key; place--) {
                from[place] = from[place - 1];
            }
            from[place] = moved;
        }
        return from;
    }
    for (uint32_t shift = 0; shift < 32; shift += RADIX_BITS) {
        memset(work->radix_counts, 0, sizeof work->radix_counts);
        for (uint32_t i = 0; i < count; i++) {
            work->radix_counts[(from[i].key >> shift) % RADIX_SIZE]++;
        }
        for (uint32_t i = 0, sum = 0; i < RADIX_SIZE; i++) {
            uint32_t here = work->radix_counts[i];
            work->radix_counts[i] = sum;
            sum += here;
        }
        for (uint32_t i = 0; i < count; i++) {
            to[work->radix_counts[(from[i].key >> shift) % RADIX_SIZE]++] = from[i];
        }
        struct candidate *swapped = from;
        from = to;
        to = swapped;
    }
    return from;
}

/* The entries of one bin, best first. */
static const struct candidate *sort_bin(struct sampling_work *work, const struct sampling_row *row, uint32_t count,
                                        uint32_t bin, float largest)
{
    uint32_t found = 0;

    assert(bin < BINS);
    for (uint32_t i = 0; i < count; i++) {
        float d = distance(largest, row->logits[i], row->params->temperature);
        if (d < INFINITY && bin_of(d) == bin) {
            struct candidate *entry = &work->entries[found++];
            memcpy(&entry->key, &d, sizeof entry->key); /* d >= 0: its bits ascend with it */
            entry->id = (int32_t)i;
        }
    }
    assert(found == work->bins[bin].count);
    return sort_entries(work, found);
}

static float key_distance(uint32_t key)
{
    float d;

    memcpy(&d, &key, sizeof d);
    return d;
}

/* Steps 6 to 8. */
static struct cut find_cut(struct sampling_work *work, const struct sampling_row *row, uint32_t count, float largest)
{
    const struct sampling_params *params = row->params;
    uint64_t k = params->top_k < 1 ? UINT32_MAX : (uint32_t)params->top_k;
    double total = 0, before = 0;
    uint64_t count_before = 0;
    struct cut cut = {0};

    for (uint32_t i = 0; i < BINS; i++) {
        total += work->bins[i].sum;
    }
    double most_before = (double)params->top_p * total;
    float d_max = params->min_p > 0 ? -logf(params->min_p) : INFINITY;
    uint32_t last = bin_of(d_max); /* the last bin that min_p can leave anything in */
    while (cut.edge < last && count_before + work->bins[cut.edge].count < k &&
           before + work->bins[cut.edge].sum <= most_before) {
        before += work->bins[cut.edge].sum;
        count_before += work->bins[cut.edge].count;
        cut.edge++;
    }

    const struct candidate *sorted = sort_bin(work, row, count, cut.edge, largest);
    cut.sum = before;
    assert(cut.edge <= last);
    for (uint32_t i = 0; i < work->bins[cut.edge].count; i++) {
        float d = key_distance(sorted[i].key);
        if (count_before + i >= k || cut.sum > most_before || weight(d) < (double)params->min_p) {
            break;
        }
        cut.sum += weight(d);
        cut.edge_count++;
    }
    return cut;
}

/* The entry in which the running sum of weights passes `target`. */
static int32_t draw(struct sampling_work *work, const struct sampling_row *row, uint32_t count, float largest,
                    const struct cut *cut, double target)
{
    double before = 0;
    assert(target >= 0 && target <= cut->sum);
    uint32_t bin = 0, last = 0; /* the last bin with anything kept in it */

    for (; bin < cut->edge && before + work->bins[bin].sum <= target; bin++) {
        before += work->bins[bin].sum;
        last = work->bins[bin].count > 0 ? bin : last;
    }
    uint32_t kept = bin == cut->edge ? cut->edge_count : work->bins[bin].count;
    if (kept == 0) { /* rounding carried the target past the end */
        bin = last;
        kept = work->bins[bin].count;
    }
    assert(kept > 0);
    const struct candidate *sorted = sort_bin(work, row, count, bin, largest);
    uint32_t i = 0;
    for (; i + 1 < kept; i++) {
        before += weight(key_distance(sorted[i].key));
        if (before > target) {
            break;
        }
    }
    return sorted[i].id;
}

enum err sampling_choose(const struct sampling_row *row, double uniform, void *memory, int32_t *token)
{
    const struct sampling_params *params = row->params;
    struct sampling_work *work = lay_work(memory, row->vocab);
    uint32_t count = row->id_limit < row->vocab ? row->id_limit : row->vocab;
    uint32_t largest;

    assert(uniform >= 0 && uniform < 1);
    assert(params->temperature >= 0 && params->repetition_penalty > 0);
    adjust(row, work);
    if (!find_largest(row->logits, count, &largest)) {
        return ERR_INTERNAL;
    }
    if (params->temperature < GREEDY_TEMPERATURE || params->top_k == 1) {
        *token = (int32_t)largest;
        return ERR_OK;
    }
    fill_bins(work->bins, row->logits, count, row->logits[largest], params->temperature);
    struct cut cut = find_cut(work, row, count, row->logits[largest]);
    *token = draw(work, row, count, row->logits[largest], &cut, uniform * cut.sum);
    return ERR_OK;
}
