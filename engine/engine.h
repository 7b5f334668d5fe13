/* engine: the face that the connection thread sees. Everything behind it (intake, scheduler, model) is engine/'s own.
 *
 * conn fills a REQUEST with its body and submits it; workers and the engine take it from there and announce each change
 * through notices and an eventfd. No call here blocks, allocates or fails for lack of memory.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/request.h"

/* Numbers that gauges, /health and /server_info show. Written by the engine thread, read by anyone (relaxed). */
struct engine_stats {
    _Atomic uint32_t running_requests, paused_requests, queued_requests;
    _Atomic uint32_t used_kv_pages, evictable_kv_pages, free_kv_pages;
    _Atomic uint32_t claimed_kv_pages;    /* most that the started requests can ever hold, shared ones counted twice */
    _Atomic uint64_t steps, prompt_tokens_total, cached_tokens_total, generated_tokens_total;
    _Atomic uint64_t pictures_decoded_total, pictures_encoded_total, feature_hits_total, evicted_pages_total;
    _Atomic uint64_t last_step_us;        /* monotonic time at which the last step ended */
    _Atomic uint64_t tick_started_us;     /* of the running tick, 0 between ticks: watchdog */
    _Atomic uint32_t tokens_per_second_milli; /* generation throughput over the last seconds, x1000 */
};

struct engine;

/* Hands a request whose body is complete to the intake workers (stage becomes INTAKE). One that asks for more than one
 * choice comes back in the stage CHOICES, with a notice. */
void engine_submit(struct engine *engine, struct request *request);

/* A request that came back in the stage CHOICES goes on to the engine (stage ENGINE), or becomes DONE if a refusal was
 * recorded meanwhile. Behind it go its other choices, in order, from the stage READING: request_open_choice. */
void engine_submit_choice(struct engine *engine, struct request *request);

/* Wakes whoever holds the request after is_cancelled was set. */
void engine_cancel(struct engine *engine, struct request *request);

/* The eventfd that becomes readable when notices wait. */
int engine_notice_fd(const struct engine *engine);

/* Takes one notice: the index of a request of which something changed (tokens, finish, DONE, body free). False: none is
 * left. Notices are hints: several changes may share one; look at the request's atomics. engine_notice_clear first. */
bool engine_notice_take(struct engine *engine, uint32_t *request_index);
void engine_notice_clear(struct engine *engine);

const struct engine_stats *engine_stats(const struct engine *engine);

/* Empties the prefix and feature caches between ticks. ERR_BUSY while requests run or wait (decided at the call). */
enum err engine_flush_caches(struct engine *engine) ERR_CHECKED;

/* A one-token generation in the page and slot kept for it, for /health_generate: starts one; poll health_done. */
void engine_health_start(struct engine *engine);
bool engine_health_done(const struct engine *engine);

#endif
