/* Every plain metric, one row each. Data only, so no include guard: define METRIC, include, done.
 *
 *     METRIC("name", type, scope, "help", value)
 *
 * `value` may use `v` (struct metrics_view), `m` (struct metrics), PAGES(x), LOAD(field of struct engine_stats) and
 * nothing else; it becomes a double. scope SCHEDULER adds the labels that SGLang's scheduler metrics carry.
 * Included for: the text of /metrics. Names and labels with "sglang:" are those of SGLang's own dashboards.
 */
METRIC("sglang:num_running_reqs", "gauge", SCHEDULER, "Requests that are computed now.", LOAD(running_requests))
METRIC("sglang:num_queue_reqs", "gauge", SCHEDULER, "Requests that wait to start.", LOAD(queued_requests))
METRIC("sglang:num_paused_reqs", "gauge", SCHEDULER, "Started requests that wait for a KV page.", LOAD(paused_requests))
METRIC("sglang:num_used_tokens", "gauge", SCHEDULER, "KV tokens in use.", PAGES(LOAD(used_kv_pages)))
METRIC("sglang:token_usage", "gauge", SCHEDULER, "Share of the KV tokens in use.",
       pools_capacity(POOL_KV_PAGE) == 0 ? 0 : LOAD(used_kv_pages) / (double)pools_capacity(POOL_KV_PAGE))
METRIC("sglang:kv_used_tokens", "gauge", SCHEDULER, "KV tokens in use.", PAGES(LOAD(used_kv_pages)))
METRIC("sglang:kv_evictable_tokens", "gauge", SCHEDULER, "KV tokens that only the prefix cache holds.",
       PAGES(LOAD(evictable_kv_pages)))
METRIC("sglang:kv_available_tokens", "gauge", SCHEDULER, "KV tokens that nobody holds.", PAGES(LOAD(free_kv_pages)))
METRIC("ashlar_kv_claimed_tokens", "gauge", FRONT, "KV tokens that the started requests can need at most.",
       PAGES(LOAD(claimed_kv_pages)))
METRIC("sglang:max_total_num_tokens", "gauge", SCHEDULER, "KV tokens of the plan.", PAGES(pools_capacity(POOL_KV_PAGE)))
METRIC("sglang:page_size", "gauge", SCHEDULER, "Tokens of a KV page.", KV_PAGE_TOKENS)
METRIC("sglang:num_pages", "gauge", SCHEDULER, "KV pages of the plan.", pools_capacity(POOL_KV_PAGE))
METRIC("sglang:context_len", "gauge", SCHEDULER, "Longest prompt plus answer.", v->context_tokens)
METRIC("sglang:weight_memory_usage_gb", "gauge", SCHEDULER, "Weights, in GiB.", (double)v->weight_bytes / BYTES_GIB)
METRIC("sglang:kv_cache_memory_usage_gb", "gauge", SCHEDULER, "KV cache, in GiB.", (double)v->kv_bytes / BYTES_GIB)
METRIC("sglang:gen_throughput", "gauge", SCHEDULER, "Generated tokens a second, over the last seconds.",
       LOAD(tokens_per_second_milli) / 1000)
METRIC("sglang:cache_hit_rate", "gauge", SCHEDULER, "Share of all prompt tokens that came from the prefix cache.",
       LOAD(prompt_tokens_total) == 0 ? 0 : LOAD(cached_tokens_total) / LOAD(prompt_tokens_total))
METRIC("sglang:evicted_tokens_total", "counter", SCHEDULER, "KV tokens taken from the prefix cache.",
       PAGES(LOAD(evicted_pages_total)))

/* What never happens here, for dashboards that ask. */
METRIC("sglang:num_grammar_queue_reqs", "gauge", SCHEDULER, "Always 0: there is no grammar queue.", 0)
METRIC("sglang:spec_accept_length", "gauge", SCHEDULER, "Always 0: no speculative decoding.", 0)
METRIC("sglang:total_retracted_reqs", "gauge", SCHEDULER, "Always 0: a started request is never retracted.", 0)
METRIC("sglang:num_retracted_reqs", "gauge", SCHEDULER, "Always 0: a started request is never retracted.", 0)
METRIC("sglang:avg_request_queue_latency", "gauge", SCHEDULER, "Always 0: see time_to_first_token_seconds.", 0)
METRIC("sglang:num_prefill_prealloc_queue_reqs", "gauge", SCHEDULER, "Always 0: one process does all.", 0)
METRIC("sglang:num_prefill_inflight_queue_reqs", "gauge", SCHEDULER, "Always 0: one process does all.", 0)
METRIC("sglang:num_decode_prealloc_queue_reqs", "gauge", SCHEDULER, "Always 0: one process does all.", 0)
METRIC("sglang:num_decode_transfer_queue_reqs", "gauge", SCHEDULER, "Always 0: one process does all.", 0)

/* Counted when a request ends. */
METRIC("sglang:prompt_tokens_total", "counter", FRONT, "Prompt tokens, picture tokens included.", m->prompt_tokens_total)
METRIC("sglang:generation_tokens_total", "counter", FRONT, "Generated tokens.", m->answer_tokens_total)
METRIC("sglang:cached_tokens_total", "counter", FRONT, "Prompt tokens that came from the prefix cache.",
       m->cached_tokens_total)
METRIC("sglang:num_requests_total", "counter", FRONT, "Requests that ended.", m->requests_total)
METRIC("sglang:num_aborted_requests_total", "counter", FRONT, "Requests that ended because the client left, or were cut.",
       m->aborted_total)
METRIC("sglang:num_so_requests_total", "counter", FRONT, "Always 0: no structured output yet.", 0)
METRIC("sglang:http_requests_active", "gauge", FRONT, "Requests that are not answered yet.", v->open_requests)

METRIC("ashlar_requests_refused_total", "counter", FRONT, "Requests with a body that the workers or the engine refused.",
       m->refused_total)
METRIC("ashlar_connections", "gauge", FRONT, "Open connections.", v->connections)
METRIC("ashlar_connections_total", "counter", FRONT, "Accepted connections.", m->accepted_total)
METRIC("ashlar_steps_total", "counter", FRONT, "Steps of the engine.", LOAD(steps))
METRIC("ashlar_pictures_decoded_total", "counter", FRONT, "Pictures decoded.", LOAD(pictures_decoded_total))
METRIC("ashlar_pictures_encoded_total", "counter", FRONT, "Pictures encoded.", LOAD(pictures_encoded_total))
METRIC("ashlar_feature_hits_total", "counter", FRONT, "Pictures whose features were cached.", LOAD(feature_hits_total))
METRIC("ashlar_planned_bytes", "gauge", FRONT, "Bytes of the memory plan.", (double)pools_opened_plan()->total_bytes)
METRIC("ashlar_log_dropped_total", "counter", FRONT, "Log lines that found no slot.", log_dropped_count())
#undef METRIC
