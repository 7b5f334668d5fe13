/* metrics: what the connection thread counts, and the text of /metrics, piece by piece.
 *
 * Always true between calls: a histogram's count is the sum of its buckets. All samples of one name come in a row, with
 * HELP and TYPE before the first, however the pieces are cut.
 */
#include "engine/http/metrics.h"

#include "engine/json_out.h"
#include "engine/log.h"
#include "pools/pools.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define BYTES_GIB 1073741824.0

/* Upper bounds: as the text of `le`, and in microseconds. */
struct bucket {
    const char *le;
    uint64_t us;
};

/* clang-format off */
static const struct bucket first_token_buckets[] = {
    {"0.1", 100000}, {"0.2", 200000}, {"0.4", 400000}, {"0.6", 600000}, {"0.8", 800000}, {"1.0", 1000000},
    {"2.0", 2000000}, {"4.0", 4000000}, {"6.0", 6000000}, {"8.0", 8000000}, {"10.0", 10000000}, {"20.0", 20000000},
    {"40.0", 40000000}, {"60.0", 60000000}, {"80.0", 80000000}, {"100.0", 100000000}, {"200.0", 200000000},
    {"400.0", 400000000},
};
static const struct bucket inter_token_buckets[] = {
    {"0.002", 2000}, {"0.004", 4000}, {"0.006", 6000}, {"0.008", 8000}, {"0.01", 10000}, {"0.015", 15000},
    {"0.02", 20000}, {"0.025", 25000}, {"0.03", 30000}, {"0.035", 35000}, {"0.04", 40000}, {"0.06", 60000},
    {"0.08", 80000}, {"0.1", 100000}, {"0.2", 200000}, {"0.4", 400000}, {"0.6", 600000}, {"0.8", 800000},
    {"1.0", 1000000}, {"2.0", 2000000}, {"4.0", 4000000}, {"6.0", 6000000}, {"8.0", 8000000},
};
static const struct bucket end_to_end_buckets[] = {
    {"0.1", 100000}, {"0.2", 200000}, {"0.4", 400000}, {"0.6", 600000}, {"0.8", 800000}, {"1.0", 1000000},
    {"2.0", 2000000}, {"4.0", 4000000}, {"6.0", 6000000}, {"8.0", 8000000}, {"10.0", 10000000}, {"20.0", 20000000},
    {"40.0", 40000000}, {"60.0", 60000000}, {"80.0", 80000000}, {"100.0", 100000000}, {"200.0", 200000000},
    {"400.0", 400000000}, {"600.0", 600000000}, {"1200.0", 1200000000}, {"1800.0", 1800000000},
    {"2400.0", 2400000000},
};
/* clang-format on */

static const int statuses[METRICS_STATUSES] = {200, 204, 400, 401, 404, 405, 408, 413, 417, 431, 500, 501, 503, 505};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

_Static_assert(LENGTH(inter_token_buckets) <= METRICS_BUCKETS_MAX, "buckets");
_Static_assert(LENGTH(end_to_end_buckets) <= METRICS_BUCKETS_MAX, "buckets");

void metrics_open(struct metrics *metrics)
{
    memset(metrics, 0, sizeof *metrics);
}

static void observe(struct histogram *histogram, const struct bucket *buckets, size_t bucket_count, uint64_t us,
                    uint64_t times)
{
    size_t i = 0;

    while (i < bucket_count && us > buckets[i].us) {
        i++;
    }
    histogram->counts[i] += times;
    histogram->count += times;
    histogram->sum_us += us * times;
}

void metrics_count_status(struct metrics *metrics, int status)
{
    for (size_t i = 0; i < METRICS_STATUSES; i++) {
        if (statuses[i] == status) {
            metrics->answered_total[i]++;
            return;
        }
    }
    assert(false); /* a status that err_table.h has and the list above lacks */
}

void metrics_count_end(struct metrics *metrics, struct request *request)
{
    uint64_t finished_us = atomic_load_explicit(&request->finished_us, memory_order_relaxed);
    uint32_t finish = atomic_load_explicit(&request->finish, memory_order_acquire);
    bool is_cancelled = atomic_load_explicit(&request->is_cancelled, memory_order_relaxed);

    if (request->err != ERR_OK && request->err != ERR_CLIENT_GONE && !is_cancelled) {
        metrics->refused_total += request->choice == 0;
        return;
    }
    if (request->choice > 0) { /* one request, one prompt; the answers are several */
        metrics->answer_tokens_total += atomic_load_explicit(&request->answer_tokens, memory_order_relaxed);
        return;
    }
    metrics->requests_total++;
    metrics->prompt_tokens_total += request->prompt_tokens;
    metrics->cached_tokens_total += request->cached_tokens;
    metrics->answer_tokens_total += atomic_load_explicit(&request->answer_tokens, memory_order_relaxed);
    if (finish != FINISH_STOP && finish != FINISH_LENGTH) {
        metrics->aborted_total++;
        return;
    }
    if (finished_us > request->arrived_us) {
        observe(&metrics->end_to_end, end_to_end_buckets, LENGTH(end_to_end_buckets), finished_us - request->arrived_us,
                1);
    }
}

void metrics_observe_first_token(struct metrics *metrics, uint64_t us)
{
    observe(&metrics->first_token, first_token_buckets, LENGTH(first_token_buckets), us, 1);
}

void metrics_observe_tokens(struct metrics *metrics, uint64_t us, uint32_t count)
{
    assert(count > 0);
    observe(&metrics->inter_token, inter_token_buckets, LENGTH(inter_token_buckets), us / count, count);
}

/* --- the text --- */

enum scope { SCHEDULER, FRONT };

struct row {
    const char *name, *type, *help;
    enum scope scope;
};

static const struct row rows[] = {
#define METRIC(row_name, row_type, row_scope, row_help, value)                                                         \
    {.name = row_name, .type = row_type, .help = row_help, .scope = row_scope},
#include "engine/http/metric_table.h"
};

static double row_value(const struct metrics_view *v, size_t row)
{
    const struct metrics *m = v->metrics;
    size_t i = 0;

#define LOAD(field)  ((double)atomic_load_explicit(&v->stats->field, memory_order_relaxed))
#define PAGES(count) ((double)(count)*KV_PAGE_TOKENS)
#define METRIC(row_name, row_type, row_scope, row_help, value)                                                         \
    if (i++ == row) {                                                                                                  \
        return (double)(value);                                                                                        \
    }
#include "engine/http/metric_table.h"
#undef LOAD
#undef PAGES
    assert(false);
    (void)m;
    return 0;
}

struct histogram_row {
    const char *name, *help;
    const struct bucket *buckets;
    size_t bucket_count;
    size_t offset; /* in struct metrics */
};

static const struct histogram_row histograms[] = {
    {"sglang:time_to_first_token_seconds", "From the end of a request's headers to its first token.",
     first_token_buckets, LENGTH(first_token_buckets), offsetof(struct metrics, first_token)},
    {"sglang:inter_token_latency_seconds", "Between tokens of one request.", inter_token_buckets,
     LENGTH(inter_token_buckets), offsetof(struct metrics, inter_token)},
    {"sglang:e2e_request_latency_seconds", "From the end of a request's headers to its last token.", end_to_end_buckets,
     LENGTH(end_to_end_buckets), offsetof(struct metrics, end_to_end)},
};

/* The model's name as a label value. */
static void escape_label(const char *text, char *out)
{
    size_t length = 0;

    for (size_t i = 0; i < METRICS_NAME_BYTES_MAX && text[i] != '\0'; i++) {
        if (text[i] == '\\' || text[i] == '"') {
            out[length++] = '\\';
        }
        out[length++] = (unsigned char)text[i] < ' ' ? '?' : text[i];
    }
    out[length] = '\0';
}

static size_t print_head(char *out, const char *name, const char *type, const char *help)
{
    return (size_t)snprintf(out, METRICS_PIECE_BYTES_MAX, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static size_t print_row(const struct metrics_view *view, size_t row, const char *model, char *out)
{
    char number[JSON_F64_BYTES_MAX + 1];

    number[json_f64_print(row_value(view, row), number)] = '\0';
    size_t length = print_head(out, rows[row].name, rows[row].type, rows[row].help);
    return length +
           (size_t)snprintf(
               out + length, METRICS_PIECE_BYTES_MAX - length, "%s{model_name=\"%s\"%s} %s\n", rows[row].name, model,
               rows[row].scope == SCHEDULER ? ",engine_type=\"unified\",tp_rank=\"0\",pp_rank=\"0\"" : "", number);
}

/* Line `line` of a histogram: the buckets, +Inf, then sum and count. */
static size_t print_histogram_line(const struct metrics_view *view, const struct histogram_row *row, size_t line,
                                   const char *model, char *out)
{
    const struct histogram *h = (const void *)((const char *)view->metrics + row->offset);
    size_t length = line == 0 ? print_head(out, row->name, "histogram", row->help) : 0;
    char *end = out + length;
    size_t room = METRICS_PIECE_BYTES_MAX - length;
    uint64_t below = 0;

    if (line <= row->bucket_count) {
        for (size_t i = 0; i <= line; i++) {
            below += h->counts[i];
        }
        const char *le = line == row->bucket_count ? "+Inf" : row->buckets[line].le;
        return length + (size_t)snprintf(end, room, "%s_bucket{model_name=\"%s\",le=\"%s\"} %llu\n", row->name, model,
                                         le, (unsigned long long)below);
    }
    return length + (size_t)snprintf(end, room,
                                     "%s_sum{model_name=\"%s\"} %llu.%06llu\n"
                                     "%s_count{model_name=\"%s\"} %llu\n",
                                     row->name, model, (unsigned long long)(h->sum_us / 1000000),
                                     (unsigned long long)(h->sum_us % 1000000), row->name, model,
                                     (unsigned long long)h->count);
}

static size_t print_status(const struct metrics_view *view, size_t i, char *out)
{
    size_t length = i == 0 ? print_head(out, "sglang:http_responses_total", "counter", "Answers by status.") : 0;

    return length + (size_t)snprintf(out + length, METRICS_PIECE_BYTES_MAX - length,
                                     "sglang:http_responses_total{status_code=\"%d\"} %llu\n", statuses[i],
                                     (unsigned long long)view->metrics->answered_total[i]);
}

/* Family `family` of the pools' metrics, row `pool`. */
static size_t print_pool(size_t family, enum pool pool, char *out)
{
    static const struct {
        const char *name, *type, *help;
    } families[] = {
        {"ashlar_pool_capacity", "gauge", "Elements of the pool."},
        {"ashlar_pool_used", "gauge", "Elements held by somebody who needs them."},
        {"ashlar_pool_cached", "gauge", "Elements held as evictable cache."},
        {"ashlar_pool_high_water", "gauge", "Most elements used at once so far."},
        {"ashlar_pool_refused", "counter", "Gets that found no element."},
    };
    const uint64_t values[] = {pools_capacity(pool), pools_used(pool), pools_cached(pool), pools_high_water(pool),
                               pools_refused(pool)};

    _Static_assert(LENGTH(families) == LENGTH(values), "one value a family");
    if (family >= LENGTH(families)) {
        return 0;
    }
    size_t length =
        pool == 0 ? print_head(out, families[family].name, families[family].type, families[family].help) : 0;
    return length + (size_t)snprintf(out + length, METRICS_PIECE_BYTES_MAX - length,
                                     "%s{pool=\"%s\",domain=\"%s\"} %llu\n", families[family].name, pools_name(pool),
                                     domain_name(pools_domain(pool)), (unsigned long long)values[family]);
}

bool metrics_piece(const struct metrics_view *view, uint32_t index, char *out, size_t *length)
{
    char model[2 * METRICS_NAME_BYTES_MAX + 1];
    size_t left = index;

    escape_label(view->model_name, model);
    if (left < LENGTH(rows)) {
        *length = print_row(view, left, model, out);
        return true;
    }
    left -= LENGTH(rows);
    for (size_t i = 0; i < LENGTH(histograms); i++) {
        size_t lines = histograms[i].bucket_count + 2;
        if (left < lines) {
            *length = print_histogram_line(view, &histograms[i], left, model, out);
            return true;
        }
        left -= lines;
    }
    if (left < METRICS_STATUSES) {
        *length = print_status(view, left, out);
        return true;
    }
    left -= METRICS_STATUSES;
    *length = print_pool(left / POOL_COUNT, (enum pool)(left % POOL_COUNT), out);
    assert(*length < METRICS_PIECE_BYTES_MAX);
    return *length > 0;
}
