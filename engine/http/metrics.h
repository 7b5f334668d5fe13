/* metrics: what the connection thread counts, and the text of /metrics (Prometheus 0.0.4), piece by piece. */
#ifndef ENGINE_HTTP_METRICS_H
#define ENGINE_HTTP_METRICS_H

#include "engine/engine.h"

#include <stddef.h>
#include <stdint.h>

enum { METRICS_BUCKETS_MAX = 24, METRICS_STATUSES = 14, METRICS_NAME_BYTES_MAX = 128 };

struct histogram {
    uint64_t counts[METRICS_BUCKETS_MAX + 1]; /* each bucket alone; the last is +Inf */
    uint64_t sum_us;
    uint64_t count;
};

/* Owned by the connection thread: no atomics. */
struct metrics {
    struct histogram first_token, inter_token, end_to_end;
    uint64_t requests_total, aborted_total, refused_total;
    uint64_t answered_total[METRICS_STATUSES];                              /* rows of the list in metrics.c */
    uint64_t accepted_total;                                                /* connections */
    uint64_t answer_tokens_total, prompt_tokens_total, cached_tokens_total; /* of ended requests */
};

void metrics_open(struct metrics *metrics);

void metrics_count_status(struct metrics *metrics, int status);
/* A submitted request ended, however. Called for each of its choices. */
void metrics_count_end(struct metrics *metrics, struct request *request);
void metrics_observe_first_token(struct metrics *metrics, uint64_t us);
/* `count` tokens came together, `us` after the last one: each counts as us / count. */
void metrics_observe_tokens(struct metrics *metrics, uint64_t us, uint32_t count);

/* The rest of what /metrics shows. */
struct metrics_view {
    const struct metrics *metrics;
    const struct engine_stats *stats;
    const char *model_name; /* its first METRICS_NAME_BYTES_MAX bytes are the label */
    uint64_t weight_bytes, kv_bytes;
    uint32_t context_tokens, running_requests;
    uint32_t connections, open_requests;
};

/* Piece `index` of the text into `out`, which holds METRICS_PIECE_BYTES_MAX; its length goes to *length (may be 0).
 * False: there is no such piece. The whole is at most METRICS_BYTES_MAX. */
enum { METRICS_PIECE_BYTES_MAX = 1024, METRICS_BYTES_MAX = 256 * 1024 };
bool metrics_piece(const struct metrics_view *view, uint32_t index, char *out, size_t *length);

#endif
