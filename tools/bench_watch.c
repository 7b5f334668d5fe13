/* bench_watch: the server's memory from outside: resident bytes of its process and what every pool holds. */
#include "tools/bench_watch.h"

#include "engine/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDLE_TRIES = 40, IDLE_WAIT_MS = 50, FILE_GROWTH_KIB_MAX = 256 /* 64 pages: design, section 4 */ };

long watch_find_process(const struct endpoint *endpoint, const char *authorization)
{
    char *body = client_get(endpoint, authorization, "/server_info");
    struct json_reader reader;
    struct json_event event;
    int64_t process = 0;
    bool is_next = false;

    if (body == NULL) {
        return 0;
    }
    json_open(&reader, body, strlen(body));
    while (process == 0 && json_next(&reader, &event) == ERR_OK && event.kind != JSON_END) {
        if (is_next && event.kind == JSON_NUMBER) {
            (void)json_number_i64(event.text, event.bytes, &process);
        }
        is_next = event.kind == JSON_KEY && json_event_is(&event, "pid");
    }
    free(body);
    return (long)process;
}

static void read_status(long process, struct watch_sample *sample)
{
    char path[64], line[256];

    snprintf(path, sizeof path, "/proc/%ld/status", process);
    FILE *file = process > 0 ? fopen(path, "r") : NULL;
    if (file == NULL) {
        return;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "RssAnon: %ld", &sample->resident_kib);
        (void)sscanf(line, "RssFile: %ld", &sample->file_kib);
    }
    (void)fclose(file);
}

/* Value of a gauge, the sum over its labels; -1 if there is none. */
static double gauge(const char *metrics, const char *name)
{
    size_t length = strlen(name);
    double sum = -1;

    for (const char *at = metrics; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        const char *value = at + strcspn(at, " \n");
        if (strncmp(at, name, length) == 0 && (at[length] == '{' || at[length] == ' ') && *value == ' ') {
            sum = (sum < 0 ? 0 : sum) + strtod(value, NULL);
        }
    }
    return sum;
}

static void read_pools(const char *metrics, struct watch_sample *sample)
{
    static const char prefix[] = "ashlar_pool_used{pool=\"";

    for (const char *at = strstr(metrics, prefix); at != NULL; at = strstr(at, prefix)) {
        struct watch_pool *pool = &sample->pools[sample->pool_count];
        at += strlen(prefix);
        const char *value = strchr(at, '}');
        if (value == NULL || sample->pool_count == WATCH_POOLS_MAX) {
            return;
        }
        snprintf(pool->name, sizeof pool->name, "%.*s", (int)strcspn(at, "\"\n"), at);
        pool->used = strtod(value + 1, NULL);
        sample->pool_count++;
    }
}

struct watch_sample watch_take(const struct endpoint *endpoint, const char *authorization, long process)
{
    struct watch_sample sample = {.resident_kib = -1, .file_kib = -1};
    char *metrics = NULL;

    for (int i = 0; i < IDLE_TRIES; i++) {
        struct timespec pause = {.tv_nsec = IDLE_WAIT_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
        free(metrics);
        metrics = client_get(endpoint, authorization, "/metrics");
        if (metrics == NULL ||
            gauge(metrics, "sglang:num_running_reqs") + gauge(metrics, "sglang:num_queue_reqs") <= 0) {
            break;
        }
    }
    if (metrics != NULL) {
        read_pools(metrics, &sample);
    }
    free(metrics);
    read_status(process, &sample);
    return sample;
}

bool watch_compare(const struct watch_sample *before, const struct watch_sample *after)
{
    bool is_equal = before->pool_count > 0 && before->pool_count == after->pool_count;

    printf("resident memory (RssAnon, KiB)           %ld then %ld: %s\n", before->resident_kib, after->resident_kib,
           before->resident_kib < 0                      ? "unknown (no pid)"
           : before->resident_kib == after->resident_kib ? "equal"
                                                         : "NOT EQUAL");
    printf("pages of files (RssFile, KiB)            %ld then %ld\n", before->file_kib, after->file_kib);
    for (int i = 0; i < before->pool_count && i < after->pool_count; i++) {
        const struct watch_pool *a = &before->pools[i], *b = &after->pools[i];
        if (strcmp(a->name, b->name) != 0 || a->used != b->used) {
            printf("pool %-35s %.0f then %.0f: NOT EQUAL\n", a->name, a->used, b->used);
            is_equal = false;
        }
    }
    printf("pools                                    %d: %s\n", before->pool_count,
           before->pool_count == 0 ? "unknown (start the server with --enable-metrics)"
           : is_equal              ? "all equal"
                                   : "NOT EQUAL");
    return is_equal && before->resident_kib >= 0 && before->resident_kib == after->resident_kib &&
           after->file_kib - before->file_kib <= FILE_GROWTH_KIB_MAX;
}
