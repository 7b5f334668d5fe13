/* bench_watch: the server's memory from outside: resident bytes of its process and what every pool holds. */
#ifndef TOOLS_BENCH_WATCH_H
#define TOOLS_BENCH_WATCH_H

#include "tools/bench_client.h"

enum { WATCH_POOLS_MAX = 64, WATCH_NAME_BYTES = 48 };

struct watch_pool {
    char name[WATCH_NAME_BYTES];
    double used;
};

struct watch_sample {
    long resident_kib; /* RssAnon; -1 when unknown */
    long file_kib;     /* RssFile */
    int pool_count;
    struct watch_pool pools[WATCH_POOLS_MAX];
};

/* The server's process id as /server_info tells it; 0 if it does not. */
long watch_find_process(const struct endpoint *endpoint, const char *authorization);

/* Waits until no request runs or waits (at most 2 s), then samples. `process` 0: no resident bytes. */
struct watch_sample watch_take(const struct endpoint *endpoint, const char *authorization, long process);

/* Prints the two samples' differences, or that there are none. True when they are equal and complete. */
bool watch_compare(const struct watch_sample *before, const struct watch_sample *after);

#endif
