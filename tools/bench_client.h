/* bench_client: sends requests over sockets of their own, many at once, and times what comes back. */
#ifndef TOOLS_BENCH_CLIENT_H
#define TOOLS_BENCH_CLIENT_H

#include "tools/bench_load.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct endpoint {
    const char *host; /* numeric */
    int port;
};

/* What one request gave. Times in milliseconds. */
struct outcome {
    bool is_success;
    double latency_ms, first_token_ms;
    double *gaps_ms; /* between tokens; the caller frees it */
    int gap_count;
    int text_tokens;       /* as sent */
    int64_t prompt_tokens; /* of the usage, -1 if none came */
    int64_t output_tokens; /* of the usage, else as asked for */
    int event_count;       /* events with text */
    char error[256];       /* why it failed */
};

struct run_plan {
    struct endpoint endpoint;
    const char *authorization; /* a whole header line with its end, or "" */
    uint64_t first_number;     /* of the load's requests */
    int request_count;
    int concurrency;     /* open at once; 0: no limit */
    double request_rate; /* arrivals a second, exponential gaps; 0: all at once */
};

/* Runs the requests; outcomes[request_count]. Returns the wall time in milliseconds. */
double client_run(const struct load *load, const struct run_plan *plan, struct outcome *outcomes);

/* A GET; the body, NUL behind it, or NULL when the status is not 200. The caller frees it. */
char *client_get(const struct endpoint *endpoint, const char *authorization, const char *path);

double client_now_ms(void);

#endif
