/* api_info: GET /model_info and GET /server_info: the flags in use, and the memory plan beside what is in use of it. */
#include "engine/http/api.h"

#include "engine/footprint.h"
#include "engine/http/http_server.h"
#include "engine/json_out.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTIONS_A_PIECE = 4,
    ROWS_A_PIECE = 4,
    OPTION_TEXT_BYTES_MAX = 256, /* a longer flag value is shown cut */
};

#define BYTES_GIB 1073741824.0

static void write_text(struct json_out *json, const char *text)
{
    if (text == NULL) {
        json_out_null(json);
        return;
    }
    json_out_string(json, text, strnlen(text, OPTION_TEXT_BYTES_MAX));
}

bool api_model_info_piece(struct http_server *server, struct api_reply *reply, uint32_t index, char *out,
                          size_t *length)
{
    const struct http_facts *facts = &server->facts;
    struct json_out json;

    (void)reply;
    json_out_open(&json, out, API_PIECE_BYTES_MAX);
    json_out_object_begin(&json);
    json_out_key(&json, "model_path");
    write_text(&json, facts->options->model_path);
    json_out_key(&json, "tokenizer_path");
    write_text(&json, facts->tokenizer_path);
    json_out_key_bool(&json, "is_generation", true);
    json_out_key(&json, "preferred_sampling_params");
    json_out_null(&json);
    json_out_key_text(&json, "weight_version", "default");
    json_out_key(&json, "served_model_name");
    write_text(&json, facts->model_name);
    json_out_key(&json, "load_format");
    write_text(&json, facts->options->load_format);
    json_out_key_bool(&json, "has_image_understanding", facts->has_pictures);
    json_out_key_bool(&json, "has_audio_understanding", false);
    json_out_key(&json, "model_type");
    write_text(&json, facts->model_type);
    json_out_key(&json, "architectures");
    json_out_array_begin(&json);
    write_text(&json, facts->architecture);
    json_out_array_end(&json);
    json_out_object_end(&json);
    assert(json_out_is_whole(&json));
    *length = json.length;
    return index == 0;
}

/* --- server_info: pieces of one object --- */

static void write_SWITCH(struct json_out *json, bool value)
{
    json_out_bool(json, value);
}

static void write_COUNT(struct json_out *json, int64_t value)
{
    json_out_i64(json, value);
}

static void write_FRACTION(struct json_out *json, double value)
{
    json_out_f64(json, value);
}

static void write_FILES(struct json_out *json, struct option_files value)
{
    json_out_i64(json, (int64_t)value.count);
}

#define write_TOKENS  write_COUNT
#define write_BYTES   write_COUNT
#define write_SECONDS write_FRACTION
#define write_TEXT    write_text
#define write_CHOICE  write_text
#define write_LIST    write_text

/* Flag `row` by its field's name. A key stays a secret: only whether there is one is told. */
static void write_option(struct json_out *json, const struct options *options, int row)
{
    switch ((enum option)row) {
#define OPTION(field, name, kind, default_value, minimum, maximum, unit, status, help)                                 \
    case OPTION_##field:                                                                                               \
        json_out_key(json, #field);                                                                                    \
        if (OPTION_##field == OPTION_api_key || OPTION_##field == OPTION_admin_api_key) {                              \
            write_text(json, options->is_given[OPTION_##field] ? "***" : NULL);                                        \
        } else {                                                                                                       \
            write_##kind(json, options->field);                                                                        \
        }                                                                                                              \
        break;
#define OPTION_ALIAS(name, field)
#define OPTION_ENV(name, field)
#include "engine/options_table.h"
    case OPTION_ROWS:
        break;
    }
}

static void write_plan_row(struct json_out *json, enum pool pool)
{
    const struct pool_plan_row *row = &pools_opened_plan()->rows[pool];

    json_out_object_begin(json);
    json_out_key_text(json, "pool", pools_name(pool));
    json_out_key_text(json, "domain", domain_name(pools_domain(pool)));
    json_out_key_i64(json, "element_bytes", (int64_t)pools_element_bytes(pool));
    json_out_key_i64(json, "count", pools_capacity(pool));
    json_out_key_i64(json, "bytes", (int64_t)(pools_stride_bytes(pool) * pools_capacity(pool)));
    json_out_key_i64(json, "used", pools_used(pool));
    json_out_key_i64(json, "cached", pools_cached(pool));
    json_out_key_i64(json, "high_water", pools_high_water(pool));
    json_out_key_i64(json, "refused", (int64_t)pools_refused(pool));
    json_out_key_text(json, "when_empty", pools_when_empty(pool));
    json_out_key(json, "holders");
    json_out_array_begin(json);
    for (uint32_t i = 0; i < row->holder_count; i++) {
        json_out_object_begin(json);
        json_out_key_i64(json, "count", (int64_t)row->holders[i].count);
        json_out_key_text(json, "whom", row->holders[i].whom);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_object_end(json);
}

static void write_footprint(struct json_out *json, const struct http_facts *facts)
{
    struct footprint now;

    (void)footprint_read(&now);
    json_out_key_i64(json, "planned_bytes", (int64_t)now.planned_bytes);
    json_out_key_i64(json, "resident_bytes_at_ready", (int64_t)facts->resident_bytes);
    json_out_key_i64(json, "resident_bytes", (int64_t)now.anonymous_bytes);
    json_out_key_i64(json, "file_bytes", (int64_t)now.file_bytes);
    json_out_key(json, "heap_calls_since_ready");
    if (now.is_heap_counted) {
        json_out_i64(json, (int64_t)now.heap_calls);
    } else {
        json_out_null(json);
    }
}

static void write_stats(struct json_out *json, const struct engine_stats *stats)
{
#define LOAD(field) ((int64_t)atomic_load_explicit(&stats->field, memory_order_relaxed))
    json_out_key_i64(json, "running_requests", LOAD(running_requests));
    json_out_key_i64(json, "paused_requests", LOAD(paused_requests));
    json_out_key_i64(json, "queued_requests", LOAD(queued_requests));
    json_out_key_i64(json, "used_kv_pages", LOAD(used_kv_pages));
    json_out_key_i64(json, "evictable_kv_pages", LOAD(evictable_kv_pages));
    json_out_key_i64(json, "free_kv_pages", LOAD(free_kv_pages));
    json_out_key_i64(json, "claimed_kv_pages", LOAD(claimed_kv_pages));
    json_out_key_i64(json, "steps", LOAD(steps));
    json_out_key_i64(json, "pictures_decoded", LOAD(pictures_decoded_total));
    json_out_key_i64(json, "pictures_encoded", LOAD(pictures_encoded_total));
    json_out_key_i64(json, "feature_hits", LOAD(feature_hits_total));
    json_out_key(json, "last_gen_throughput");
    json_out_f64(json, (double)LOAD(tokens_per_second_milli) / 1000);
#undef LOAD
}

/* From behind the flags to the open list of the plan's rows. */
static void write_state(struct json_out *json, struct http_server *server)
{
    const struct http_facts *facts = &server->facts;
    int64_t kv_tokens = (int64_t)pools_capacity(POOL_KV_PAGE) * KV_PAGE_TOKENS;

    json_out_key_i64(json, "max_total_num_tokens", kv_tokens);
    json_out_key_i64(json, "max_req_input_len", (int64_t)facts->context_tokens - 1);
    json_out_key_text(json, "status", http_server_is_open(server) ? "ready" : "draining");
    json_out_key_text(json, "version", ASHLAR_VERSION);
    json_out_key_i64(json, "pid", getpid());
    write_footprint(json, facts);
    json_out_key(json, "internal_states");
    json_out_array_begin(json);
    json_out_object_begin(json);
    json_out_key_i64(json, "effective_max_running_requests_per_dp", facts->running_requests);
    json_out_key_i64(json, "effective_max_queued_requests", facts->queued_requests);
    json_out_key_i64(json, "effective_context_length", facts->context_tokens);
    write_stats(json, engine_stats(server->engine));
    json_out_key(json, "memory_usage");
    json_out_object_begin(json);
    json_out_key(json, "weight");
    json_out_f64(json, (double)facts->weight_bytes / BYTES_GIB);
    json_out_key(json, "kvcache");
    json_out_f64(json, (double)(pools_stride_bytes(POOL_KV_PAGE) * pools_capacity(POOL_KV_PAGE)) / BYTES_GIB);
    json_out_key_i64(json, "token_capacity", kv_tokens);
    json_out_key_i64(json, "graph", 0);
    json_out_key(json, "plan");
    json_out_array_begin(json);
}

bool api_server_info_piece(struct http_server *server, struct api_reply *reply, uint32_t index, char *out,
                           size_t *length)
{
    const uint32_t option_pieces = (OPTION_ROWS + OPTIONS_A_PIECE - 1) / OPTIONS_A_PIECE;
    const uint32_t row_pieces = (POOL_COUNT + ROWS_A_PIECE - 1) / ROWS_A_PIECE;
    struct json_out json;
    char *at = out;

    /* Each piece is written as the inside of an object or list of its own, whose opening bracket is then left out. */
    (void)reply;
    json_out_open(&json, out, API_PIECE_BYTES_MAX - 1);
    if (index < option_pieces) {
        json_out_object_begin(&json);
        for (int i = 0; i < OPTIONS_A_PIECE && (int)index * OPTIONS_A_PIECE + i < OPTION_ROWS; i++) {
            write_option(&json, server->facts.options, (int)index * OPTIONS_A_PIECE + i);
        }
        at[0] = index == 0 ? '{' : ',';
    } else if (index == option_pieces) {
        json_out_object_begin(&json);
        write_state(&json, server);
        at[0] = ',';
    } else if (index <= option_pieces + row_pieces) {
        uint32_t piece = index - option_pieces - 1;
        json_out_array_begin(&json);
        for (uint32_t i = piece * ROWS_A_PIECE; i < (piece + 1) * ROWS_A_PIECE && i < POOL_COUNT; i++) {
            write_plan_row(&json, (enum pool)i);
        }
        at[0] = piece == 0 ? ' ' : ',';
    } else {
        static const char end[] = "]}}]}";
        memcpy(out, end, sizeof end - 1);
        *length = sizeof end - 1;
        return index == option_pieces + row_pieces + 1;
    }
    assert(!json.has_overflowed);
    *length = json.length;
    return true;
}
