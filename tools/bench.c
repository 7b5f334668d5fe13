/* bench: makes the load of SGLang's bench_serving with its flags and result block, and judges the server's memory.
 *
 * The verdict: resident memory and what every pool holds are the same after the first requests (10) and after the last.
 */
#include "tools/bench_client.h"
#include "tools/bench_load.h"
#include "tools/bench_watch.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARMUP_OUTPUT_TOKENS_MAX = 32 };

/* ---- options ---- */

struct bench_options {
    const char *backend, *base_url, *host, *port, *dataset, *model, *tokenizer, *process, *output_file, *extra_body;
    const char *resolution, *num_prompts, *input_tokens, *output_tokens, *range_ratio, *picture_count, *request_rate;
    const char *concurrency, *seed, *warmup_requests, *settled_requests, *ignored;
    const char *disable_stream, *disable_ignore_eos, *no_verdict, *quiet; /* switches */
};

#define FIELD(name) offsetof(struct bench_options, name)

static const struct bench_flag {
    const char *name;
    size_t field;
    bool is_switch;
    const char *standard;
    const char *help;
} flags[] = {
    {"--backend", FIELD(backend), false, "sglang-oai-chat", "only sglang-oai-chat: POST /v1/chat/completions"},
    {"--base-url", FIELD(base_url), false, NULL, "http://ADDRESS:PORT; instead of --host and --port"},
    {"--host", FIELD(host), false, "127.0.0.1", "numeric address of the server"},
    {"--port", FIELD(port), false, "30000", "its port"},
    {"--dataset-name", FIELD(dataset), false, "random-image", "random-image (or image), random"},
    {"--model", FIELD(model), false, NULL, "name sent; default: the first of /v1/models"},
    {"--tokenizer", FIELD(tokenizer), false, NULL, "folder to draw words from; default: /model_info's"},
    {"--num-prompts", FIELD(num_prompts), false, "1000", "requests"},
    {"--random-input-len", FIELD(input_tokens), false, "1024", "text tokens of a request"},
    {"--random-output-len", FIELD(output_tokens), false, "1024", "tokens to generate"},
    {"--random-range-ratio", FIELD(range_ratio), false, "0.0", "lengths from ratio * length to length"},
    {"--random-image-num-images", FIELD(picture_count), false, "1", "pictures of a request"},
    {"--random-image-count", FIELD(picture_count), false, NULL, "the same"},
    {"--image-count", FIELD(picture_count), false, NULL, "the same"},
    {"--random-image-resolution", FIELD(resolution), false, "1080p", "360p, 720p, 1080p, 4k or HEIGHTxWIDTH"},
    {"--image-resolution", FIELD(resolution), false, NULL, "the same"},
    {"--request-rate", FIELD(request_rate), false, "inf", "arrivals a second, exponential gaps"},
    {"--max-concurrency", FIELD(concurrency), false, NULL, "requests open at once"},
    {"--seed", FIELD(seed), false, "1", "of everything random"},
    {"--warmup-requests", FIELD(warmup_requests), false, "1", "copies of the first request, before the clock starts"},
    {"--disable-stream", FIELD(disable_stream), true, NULL, "whole answers"},
    {"--disable-ignore-eos", FIELD(disable_ignore_eos), true, NULL, "let the model end its answers"},
    {"--output-file", FIELD(output_file), false, NULL, "append one line of JSON with the results"},
    {"--extra-request-body", FIELD(extra_body), false, NULL, "a JSON object whose members are added to each body"},
    {"--pid", FIELD(process), false, NULL, "server's process; default: /server_info's"},
    {"--settled-requests", FIELD(settled_requests), false, "10", "memory is judged from behind this request"},
    {"--no-verdict", FIELD(no_verdict), true, NULL, "do not judge memory"},
    {"--image-format", FIELD(ignored), false, NULL, "accepted; pictures are JPEG of quality 85"},
    {"--image-content", FIELD(ignored), false, NULL, "accepted; pictures are noise"},
    {"--apply-chat-template", FIELD(quiet), true, NULL, "accepted; the server applies it"},
    {"--disable-tqdm", FIELD(quiet), true, NULL, "accepted; there is no progress bar"},
    {"--output-details", FIELD(quiet), true, NULL, "accepted"},
    {"--flush-cache", FIELD(quiet), true, NULL, "accepted; no two requests share a picture"},
};

enum { FLAG_COUNT = sizeof flags / sizeof flags[0] };

static _Noreturn void usage(const char *problem, const char *flag)
{
    if (problem != NULL) {
        fprintf(stderr, "ashlar-bench: %s %s\n", problem, flag);
        exit(2);
    }
    printf("ashlar-bench: SGLang's bench_serving for the chat route, with a verdict on the server's memory.\n\n");
    for (int i = 0; i < FLAG_COUNT; i++) {
        printf("  %-28s %s%s%s%s\n", flags[i].name, flags[i].help, flags[i].standard == NULL ? "" : " (",
               flags[i].standard == NULL ? "" : flags[i].standard, flags[i].standard == NULL ? "" : ")");
    }
    exit(0);
}

/* As argparse finds flags: the exact name, else the only one that begins so. */
static const struct bench_flag *find_flag(const char *name, size_t bytes)
{
    const struct bench_flag *found = NULL;

    for (int i = 0; i < FLAG_COUNT; i++) {
        if (strncmp(flags[i].name, name, bytes) == 0) {
            if (flags[i].name[bytes] == '\0') {
                return &flags[i];
            }
            if (found != NULL && found->field != flags[i].field) {
                usage("ambiguous flag", name);
            }
            found = &flags[i];
        }
    }
    return found;
}

static void parse_options(int argc, char **argv, struct bench_options *options)
{
    for (int i = 0; i < FLAG_COUNT; i++) {
        if (flags[i].standard != NULL) {
            memcpy((char *)options + flags[i].field, &flags[i].standard, sizeof flags[i].standard);
        }
    }
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *equals = strchr(argv[i], '='), *value = "yes";
        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
            usage(NULL, NULL);
        }
        const struct bench_flag *flag = find_flag(name, equals == NULL ? strlen(name) : (size_t)(equals - name));
        if (flag == NULL || strlen(name) < 3) {
            usage("unknown flag", name);
        }
        if (!flag->is_switch) {
            value = equals != NULL ? equals + 1 : ++i < argc ? argv[i] : NULL;
        }
        if (value == NULL) {
            usage("no value for", name);
        }
        memcpy((char *)options + flag->field, &value, sizeof value);
    }
}

static long number_of(const char *text, const char *flag, long minimum)
{
    char *end = NULL;
    long value = strtol(text, &end, 10);

    if (end == text || *end != '\0' || value < minimum) {
        usage("not a number in range:", flag);
    }
    return value;
}

/* ---- the bench ---- */

struct bench {
    struct bench_options options;
    struct load load;
    struct run_plan plan;
    char host[128];
    char model[256];
    char tokenizer[1024];
    char authorization[512];
    long process;
    struct outcome *outcomes;
    int request_count;
    double wall_ms;
};

/* The text behind `"key":"` in a server's answer, copied; false if there is none. */
static bool text_behind(const char *body, const char *key, char *text, size_t capacity)
{
    char pattern[64];

    snprintf(pattern, sizeof pattern, "\"%s\"", key);
    const char *at = body == NULL ? NULL : strstr(body, pattern);
    if (at == NULL) {
        return false;
    }
    at += strlen(pattern);
    at += strspn(at, ": ");
    if (*at != '"') {
        return false;
    }
    snprintf(text, capacity, "%.*s", (int)strcspn(at + 1, "\""), at + 1);
    return true;
}

static void find_endpoint(struct bench *bench)
{
    const struct bench_options *options = &bench->options;
    const char *key = getenv("OPENAI_API_KEY");
    const char *url = options->base_url;

    snprintf(bench->host, sizeof bench->host, "%s", options->host);
    bench->plan.endpoint.port = (int)number_of(options->port, "--port", 1);
    if (url != NULL) {
        url += strncmp(url, "http://", 7) == 0 ? 7 : 0;
        if (sscanf(url, "%127[^:/]:%d", bench->host, &bench->plan.endpoint.port) != 2) {
            usage("--base-url is http://ADDRESS:PORT, not", options->base_url);
        }
    }
    if (strcmp(bench->host, "localhost") == 0) {
        snprintf(bench->host, sizeof bench->host, "127.0.0.1");
    }
    if (key != NULL) {
        snprintf(bench->authorization, sizeof bench->authorization, "Authorization: Bearer %s\r\n", key);
    }
    bench->plan.endpoint.host = bench->host;
    bench->plan.authorization = bench->authorization;
}

static void find_model(struct bench *bench)
{
    char *models = client_get(&bench->plan.endpoint, bench->authorization, "/v1/models");
    char *info = client_get(&bench->plan.endpoint, bench->authorization, "/model_info");

    if (models == NULL) {
        fprintf(stderr, "ashlar-bench: no answer from http://%s:%d/v1/models\n", bench->host,
                bench->plan.endpoint.port);
        exit(1);
    }
    if (bench->options.model != NULL) {
        snprintf(bench->model, sizeof bench->model, "%s", bench->options.model);
    } else if (!text_behind(models, "id", bench->model, sizeof bench->model)) {
        snprintf(bench->model, sizeof bench->model, "default");
    }
    if (bench->options.tokenizer != NULL) {
        snprintf(bench->tokenizer, sizeof bench->tokenizer, "%s", bench->options.tokenizer);
    } else if (!text_behind(info, "tokenizer_path", bench->tokenizer, sizeof bench->tokenizer)) {
        (void)text_behind(info, "model_path", bench->tokenizer, sizeof bench->tokenizer);
    }
    free(models);
    free(info);
    bench->process = bench->options.process != NULL ? number_of(bench->options.process, "--pid", 1)
                                                    : watch_find_process(&bench->plan.endpoint, bench->authorization);
}

static void find_load(struct bench *bench)
{
    const struct bench_options *options = &bench->options;
    struct load *load = &bench->load;
    bool has_pictures = strcmp(options->dataset, "random-image") == 0 || strcmp(options->dataset, "image") == 0;

    if (strcmp(options->backend, "sglang-oai-chat") != 0) {
        usage("not supported: --backend", options->backend);
    }
    if (!has_pictures && strcmp(options->dataset, "random") != 0) {
        usage("not supported: --dataset-name", options->dataset);
    }
    if (!load_resolution(options->resolution, &load->picture_width, &load->picture_height)) {
        usage("not a resolution:", options->resolution);
    }
    load->picture_count = has_pictures ? (int)number_of(options->picture_count, "--image-count", 0) : 0;
    load->input_tokens = (int)number_of(options->input_tokens, "--random-input-len", 1);
    load->output_tokens = (int)number_of(options->output_tokens, "--random-output-len", 1);
    load->range_ratio = strtod(options->range_ratio, NULL);
    load->seed = (uint64_t)number_of(options->seed, "--seed", 0);
    load->is_stream = options->disable_stream == NULL;
    load->ignores_eos = options->disable_ignore_eos == NULL;
    load->extra_body = options->extra_body;
    load->model = bench->model;
    bench->request_count = (int)number_of(options->num_prompts, "--num-prompts", 1);
    bench->plan.concurrency =
        options->concurrency == NULL ? 0 : (int)number_of(options->concurrency, "--max-concurrency", 1);
    bench->plan.request_rate = strcmp(options->request_rate, "inf") == 0 ? 0 : strtod(options->request_rate, NULL);
    if (load_open(load, bench->tokenizer[0] == '\0' ? NULL : bench->tokenizer) == 0) {
        printf("No tokenizer could be read: the text is plain words, token counts are estimates.\n");
    }
}

static void warm_up(struct bench *bench)
{
    int count = (int)number_of(bench->options.warmup_requests, "--warmup-requests", 0);
    struct outcome *outcomes = calloc((size_t)count + 1, sizeof *outcomes);
    struct load load = bench->load;
    int success_count = 0;

    if (outcomes == NULL || count == 0) {
        free(outcomes);
        return;
    }
    load.output_tokens = load.output_tokens < WARMUP_OUTPUT_TOKENS_MAX ? load.output_tokens : WARMUP_OUTPUT_TOKENS_MAX;
    for (int i = 0; i < count; i++) {
        struct run_plan plan = bench->plan;
        plan.request_count = 1;
        plan.request_rate = 0;
        (void)client_run(&load, &plan, &outcomes[i]);
        success_count += outcomes[i].is_success;
        free(outcomes[i].gaps_ms);
    }
    if (success_count == 0) {
        fprintf(stderr, "ashlar-bench: warm-up failed: %s\n", outcomes[0].error);
        exit(1);
    }
    free(outcomes);
}

/* Requests [from, to) of the load, numbered after the warm-up's. */
static void run_part(struct bench *bench, int from, int to)
{
    struct run_plan plan = bench->plan;

    plan.first_number = (uint64_t)from + 1;
    plan.request_count = to - from;
    if (to > from) {
        bench->wall_ms += client_run(&bench->load, &plan, bench->outcomes + from);
    }
}

/* ---- results ---- */

struct series {
    double *values;
    size_t count, capacity;
};

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double mean(const struct series *series)
{
    double sum = 0;

    for (size_t i = 0; i < series->count; i++) {
        sum += series->values[i];
    }
    return series->count == 0 ? 0 : sum / (double)series->count;
}

/* Linear between neighbours, as numpy does; the values are sorted. */
static double percentile(const struct series *series, double percent)
{
    if (series->count == 0) {
        return 0;
    }
    double place = percent / 100 * (double)(series->count - 1);
    size_t below = (size_t)floor(place), above = below + 1 < series->count ? below + 1 : below;
    return series->values[below] + (place - (double)below) * (series->values[above] - series->values[below]);
}

static void collect(struct series *series, const double *values, size_t count)
{
    if (count == 0) {
        return;
    }
    if (series->count + count > series->capacity) {
        series->capacity = (series->count + count) * 2;
        series->values = realloc(series->values, series->capacity * sizeof *series->values);
    }
    if (series->values == NULL) {
        exit(2);
    }
    memcpy(series->values + series->count, values, count * sizeof *values);
    series->count += count;
}

struct results {
    struct series latencies, first_tokens, gaps, token_times; /* ms */
    int success_count;
    double input_tokens, output_tokens, event_count, latency_sum_ms;
};

static void gather(const struct bench *bench, struct results *results)
{
    for (int i = 0; i < bench->request_count; i++) {
        const struct outcome *outcome = &bench->outcomes[i];
        if (!outcome->is_success) {
            continue;
        }
        results->success_count++;
        results->input_tokens += (double)(outcome->prompt_tokens >= 0 ? outcome->prompt_tokens : outcome->text_tokens);
        results->output_tokens += (double)outcome->output_tokens;
        results->event_count += outcome->event_count;
        results->latency_sum_ms += outcome->latency_ms;
        collect(&results->latencies, &outcome->latency_ms, 1);
        collect(&results->first_tokens, &outcome->first_token_ms, outcome->event_count > 0);
        collect(&results->gaps, outcome->gaps_ms, (size_t)outcome->gap_count);
        if (outcome->output_tokens > 1) {
            double time_ms = (outcome->latency_ms - outcome->first_token_ms) / (double)(outcome->output_tokens - 1);
            collect(&results->token_times, &time_ms, 1);
        }
    }
    struct series *all[] = {&results->latencies, &results->first_tokens, &results->gaps, &results->token_times};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->count > 0) {
            qsort(all[i]->values, all[i]->count, sizeof *all[i]->values, compare_doubles);
        }
    }
}

static void print_series(const char *title, const char *name, const struct series *series)
{
    int dashes = 50 - (int)strlen(title), left = dashes / 2;
    char text[48];

    if (series->count == 0) {
        return;
    }
    printf("%.*s%s%.*s\n", left, "-------------------------", title, dashes - left, "-------------------------");
    const struct {
        const char *word;
        double value;
    } rows[] = {{"Mean", mean(series)},          {"Median", percentile(series, 50)}, {"P90", percentile(series, 90)},
                {"P95", percentile(series, 95)}, {"P99", percentile(series, 99)},    {"Max", percentile(series, 100)}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(text, sizeof text, "%s %s (ms):", rows[i].word, name);
        printf("%-40s %-10.2f\n", text, rows[i].value);
    }
}

static void print_results(const struct bench *bench, const struct results *results)
{
    double seconds = bench->wall_ms / 1e3;
    const struct {
        const char *name;
        double value;
    } rows[] = {
        {"Request throughput (req/s):", results->success_count / seconds},
        {"Input token throughput (tok/s):", results->input_tokens / seconds},
        {"Output token throughput (tok/s):", results->output_tokens / seconds},
        {"Total token throughput (tok/s):", (results->input_tokens + results->output_tokens) / seconds},
        {"Concurrency:", results->latency_sum_ms / bench->wall_ms},
    };

    printf("\n============ Serving Benchmark Result ============\n");
    printf("%-40s %-10s\n", "Backend:", bench->options.backend);
    printf("%-40s %-10s\n", "Traffic request rate:", bench->options.request_rate);
    printf("%-40s %-10s\n",
           "Max request concurrency:", bench->options.concurrency == NULL ? "not set" : bench->options.concurrency);
    printf("%-40s %-10d\n", "Successful requests:", results->success_count);
    printf("%-40s %-10.2f\n", "Benchmark duration (s):", seconds);
    printf("%-40s %-10.0f\n", "Total input tokens:", results->input_tokens);
    printf("%-40s %-10.0f\n", "Total generated tokens:", results->output_tokens);
    printf("%-40s %-10.0f\n", "Events with text:", results->event_count);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        printf("%-40s %-10.2f\n", rows[i].name, rows[i].value);
    }
    print_series("End-to-End Latency", "E2E Latency", &results->latencies);
    print_series("Time to First Token", "TTFT", &results->first_tokens);
    print_series("Time per Output Token (excl. 1st token)", "TPOT", &results->token_times);
    print_series("Inter-Token Latency", "ITL", &results->gaps);
    printf("==================================================\n");
}

static void append_results(const struct bench *bench, const struct results *results)
{
    FILE *file = fopen(bench->options.output_file, "a");

    if (file == NULL) {
        fprintf(stderr, "ashlar-bench: cannot write %s\n", bench->options.output_file);
        exit(2);
    }
    fprintf(file,
            "{\"backend\":\"%s\",\"dataset_name\":\"%s\",\"num_prompts\":%d,\"completed\":%d,\"duration\":%.6f,"
            "\"total_input_tokens\":%.0f,\"total_output_tokens\":%.0f,\"mean_e2e_latency_ms\":%.3f,"
            "\"median_e2e_latency_ms\":%.3f,\"mean_ttft_ms\":%.3f,\"median_ttft_ms\":%.3f,\"p99_ttft_ms\":%.3f,"
            "\"mean_itl_ms\":%.3f,\"median_itl_ms\":%.3f,\"p99_itl_ms\":%.3f}\n",
            bench->options.backend, bench->options.dataset, bench->request_count, results->success_count,
            bench->wall_ms / 1e3, results->input_tokens, results->output_tokens, mean(&results->latencies),
            percentile(&results->latencies, 50), mean(&results->first_tokens), percentile(&results->first_tokens, 50),
            percentile(&results->first_tokens, 99), mean(&results->gaps), percentile(&results->gaps, 50),
            percentile(&results->gaps, 99));
    (void)fclose(file);
}

static bool report(const struct bench *bench)
{
    struct results results = {0};
    int shown = 0;

    gather(bench, &results);
    print_results(bench, &results);
    for (int i = 0; i < bench->request_count && shown < 5; i++) {
        if (!bench->outcomes[i].is_success) {
            printf("request %d failed: %s\n", i + 1, bench->outcomes[i].error);
            shown++;
        }
    }
    if (bench->options.output_file != NULL) {
        append_results(bench, &results);
    }
    free(results.latencies.values);
    free(results.first_tokens.values);
    free(results.gaps.values);
    free(results.token_times.values);
    return results.success_count == bench->request_count;
}

int main(int argc, char **argv)
{
    static struct bench bench;

    (void)signal(SIGPIPE, SIG_IGN);
    parse_options(argc, argv, &bench.options);
    find_endpoint(&bench);
    find_model(&bench);
    find_load(&bench);
    bench.outcomes = calloc((size_t)bench.request_count, sizeof *bench.outcomes);
    if (bench.outcomes == NULL) {
        return 2;
    }
    warm_up(&bench);

    bool is_judged = bench.options.no_verdict == NULL;
    int settled = (int)number_of(bench.options.settled_requests, "--settled-requests", 0);
    settled = is_judged && bench.request_count > settled ? settled : 0;
    run_part(&bench, 0, settled);
    struct watch_sample before = watch_take(&bench.plan.endpoint, bench.authorization, bench.process);
    run_part(&bench, settled, bench.request_count);
    struct watch_sample after = watch_take(&bench.plan.endpoint, bench.authorization, bench.process);

    bool is_good = report(&bench);
    if (is_judged) {
        printf("\nmemory after request %d and after request %d\n", settled, bench.request_count);
        bool is_flat = watch_compare(&before, &after);
        printf("verdict: %s\n", is_flat ? "FLAT" : "NOT FLAT");
        is_good = is_good && is_flat;
    }
    for (int i = 0; i < bench.request_count; i++) {
        free(bench.outcomes[i].gaps_ms);
    }
    free(bench.outcomes);
    load_shut(&bench.load);
    return is_good ? 0 : 1;
}
