/* plan_limits: from flags to counts. */
#include "engine/plan_limits.h"

#include "engine/json.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNK_TOKENS_DEFAULT = 512, /* on a CPU */
    QUEUED_PER_RUNNING = 4,
    CONNECTIONS_PER_REQUEST = 4, /* keep-alive ones idle between requests */
    CONNECTIONS_MIN = 64,
    INTAKE_WORKERS = 2,         /* so that a long body does not hold up a short one */
    THREADS_BESIDE_WORKERS = 3, /* connections, engine, log */
    COUNT_MAX = 1 << 28,        /* what pools_plan accepts */
};

static const double FRACTION_DEFAULT = 0.85;
static const uint64_t MIB = 1024 * 1024;

static uint32_t smaller(uint64_t a, uint64_t b)
{
    uint64_t least = a < b ? a : b;

    return least < COUNT_MAX ? (uint32_t)least : COUNT_MAX;
}

static uint32_t ceil_div(uint32_t dividend, uint32_t divisor)
{
    assert(divisor > 0);
    return dividend / divisor + (dividend % divisor != 0);
}

/* The effective context: the model's, or the flag's, and never more than the KV cache that --max-total-tokens allows.
 */
static bool fill_context(const struct options *options, const struct plan_facts *facts, struct pool_limits *limits,
                         struct options_error *error)
{
    uint64_t asked = (uint64_t)options->context_length;

    if (asked > facts->context_max_tokens && options->allow_longer_context == 0) {
        (void)snprintf(error->text, sizeof error->text,
                       "%s: %lld is out of range: the model's own context is %u "
                       "(SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 lets it pass)",
                       options_name(OPTION_context_length), (long long)options->context_length,
                       facts->context_max_tokens);
        return false;
    }
    limits->context_tokens = smaller(asked > 0 ? asked : facts->context_max_tokens, COUNT_MAX);
    if (options->max_total_tokens > 0) {
        uint64_t whole_pages = (uint64_t)options->max_total_tokens / KV_PAGE_TOKENS * KV_PAGE_TOKENS;
        limits->context_tokens = smaller(limits->context_tokens, whole_pages);
    }
    assert(limits->context_tokens > 0);
    limits->context_pages = ceil_div(limits->context_tokens, KV_PAGE_TOKENS);
    return true;
}

/* More KV pages than this could never be used: each running request its full context, the prefix cache as much again,
 * and one page for /health_generate. */
static void fill_kv_cap(const struct options *options, struct pool_limits *limits)
{
    uint64_t running = (uint64_t)limits->running_requests * limits->context_pages;
    uint64_t pages = running + (limits->has_prefix_cache ? running : 0);

    if (options->max_total_tokens > 0) {
        pages = smaller(pages, (uint64_t)options->max_total_tokens / KV_PAGE_TOKENS);
    }
    limits->kv_pages_cap = smaller(pages + 1, COUNT_MAX);
    assert(limits->kv_pages_cap > limits->context_pages || limits->context_pages == COUNT_MAX);
}

static void fill_requests(const struct options *options, uint32_t running_requests, struct pool_limits *limits)
{
    limits->running_requests = running_requests;
    limits->queued_requests = options->is_given[OPTION_max_queued_requests]
                                  ? smaller((uint64_t)options->max_queued_requests, COUNT_MAX)
                                  : running_requests * QUEUED_PER_RUNNING;
    uint64_t requests = (uint64_t)limits->running_requests + limits->queued_requests;
    uint64_t connections = requests * CONNECTIONS_PER_REQUEST;
    connections = connections < CONNECTIONS_MIN ? CONNECTIONS_MIN : connections;
    limits->connections =
        smaller(options->max_connections > 0 ? (uint64_t)options->max_connections : connections, COUNT_MAX);
    limits->small_body_bytes = BODY_SMALL_BYTES;
    limits->large_bodies = smaller((uint64_t)options->large_bodies, COUNT_MAX);
    limits->large_body_bytes = (uint64_t)options->large_body_bytes;
}

static void fill_steps(const struct options *options, struct pool_limits *limits)
{
    int64_t asked = options->chunked_prefill_size;
    uint64_t chunk = asked < 0 ? limits->context_tokens : asked == 0 ? CHUNK_TOKENS_DEFAULT : (uint64_t)asked;

    chunk = chunk < (uint64_t)options->max_prefill_tokens ? chunk : (uint64_t)options->max_prefill_tokens;
    limits->chunk_tokens = smaller(chunk, limits->context_tokens);
    limits->step_tokens = limits->chunk_tokens + limits->running_requests;
    assert(limits->chunk_tokens > 0);
}

/* A picture of more tokens than the context is refused by its header, so no pool has to hold one. */
static void fill_pictures(const struct options *options, const struct plan_facts *facts, struct pool_limits *limits)
{
    limits->picture_tokens = smaller(facts->picture_tokens_max, limits->context_tokens);
    if (limits->picture_tokens == 0) {
        limits->images_per_request = 0;
        return;
    }
    assert(facts->token_pixels > 0);
    assert(facts->mm_page_bytes > 0);
    limits->picture_pages = ceil_div(limits->picture_tokens, MM_PAGE_TOKENS);
    limits->picture_pixels = smaller((uint64_t)limits->picture_tokens * facts->token_pixels, COUNT_MAX);
    limits->feature_cache_pages = smaller((uint64_t)options->vlm_cache_size_mb * MIB / facts->mm_page_bytes, COUNT_MAX);
    limits->source_pixels = (uint64_t)options->max_source_pixels;
    limits->picture_workers = 1;
}

static void fill_threads(const struct options *options, const struct plan_facts *facts, struct pool_limits *limits)
{
    limits->compute_threads = smaller(options->threads > 0 ? (uint64_t)options->threads : facts->cpus, THREADS_MAX);
    limits->intake_workers = INTAKE_WORKERS;
    assert(limits->compute_threads > 0);
    limits->stacks =
        THREADS_BESIDE_WORKERS + limits->intake_workers + limits->picture_workers + (limits->compute_threads - 1);
}

static bool refuse_image_limit(struct options_error *error, const char *text)
{
    (void)snprintf(error->text, sizeof error->text,
                   "%s: %s is not {\"image\": N} with N from 0 to %d (\"video\" and \"audio\" may be there)",
                   options_name(OPTION_limit_mm_data_per_request), text, IMAGES_MAX);
    return false;
}

/* --limit-mm-data-per-request: {"image": N, "video": N, "audio": N}, each optional. */
static bool fill_image_limit(const struct options *options, struct pool_limits *limits, struct options_error *error)
{
    const char *text = options->limit_mm_data_per_request;
    struct json_reader reader;
    struct json_event event;

    limits->images_per_request = limits->picture_tokens > 0 ? IMAGES_MAX : 0;
    if (text == NULL) {
        return true;
    }
    json_open_raw(&reader, text, strlen(text));
    if (json_next(&reader, &event) != ERR_OK || event.kind != JSON_OBJECT_BEGIN) {
        return refuse_image_limit(error, text);
    }
    while (json_next(&reader, &event) == ERR_OK && event.kind == JSON_KEY) {
        bool is_image = json_event_is(&event, "image");
        int64_t count = -1;
        if (!is_image && !json_event_is(&event, "video") && !json_event_is(&event, "audio")) {
            return refuse_image_limit(error, text);
        }
        if (json_next(&reader, &event) != ERR_OK || event.kind != JSON_NUMBER ||
            !json_number_i64(event.text, event.bytes, &count) || count < 0 || (is_image && count > IMAGES_MAX)) {
            return refuse_image_limit(error, text);
        }
        if (is_image) {
            limits->images_per_request = smaller((uint64_t)count, limits->images_per_request);
        }
    }
    if (reader.err != ERR_OK || json_next(&reader, &event) != ERR_OK || event.kind != JSON_END) {
        return refuse_image_limit(error, text);
    }
    return true;
}

bool plan_limits_from_options(const struct options *options, const struct plan_facts *facts, uint32_t running_requests,
                              struct pool_limits *limits, struct options_error *error)
{
    assert(running_requests > 0);
    assert(facts->context_max_tokens > 0);
    *limits = (struct pool_limits){.has_prefix_cache = !options->disable_radix_cache};
    if (!fill_context(options, facts, limits, error)) {
        return false;
    }
    fill_requests(options, running_requests, limits);
    fill_kv_cap(options, limits);
    fill_steps(options, limits);
    fill_pictures(options, facts, limits);
    fill_threads(options, facts, limits);
    return fill_image_limit(options, limits, error);
}

double plan_fraction(const struct options *options)
{
    if (options->is_given[OPTION_mem_fraction_static]) {
        return options->mem_fraction_static;
    }
    return options->is_given[OPTION_device_memory] ? 1 : FRACTION_DEFAULT;
}

uint64_t plan_limit_bytes(const struct options *options, uint64_t available_bytes)
{
    uint64_t memory_bytes =
        options->is_given[OPTION_device_memory] ? (uint64_t)options->device_memory : available_bytes;

    /* Below 2^53, so the product is the same on every machine. */
    return (uint64_t)((double)memory_bytes * plan_fraction(options));
}
