/* Every pool of the server, one row each. Data only, so no include guard: define POOL and HELD, include, done.
 *
 *     POOL(NAME, domain, element_bytes, holders, when_empty)
 *
 * `holders` is a list of HELD(count, "by whom"): the pool's count is their sum, and the plan prints each. element_bytes
 * and counts may use `s` (struct pool_sizes: what the model and the records measure), `l` (struct pool_limits: what the
 * flags allow), KV_PAGES (the elastic count, as solved; CACHED_KV_PAGES is 0 without a prefix cache) and nothing else.
 * `when_empty` says what a refused get becomes; a pool that cannot run dry says why.
 * Included for: ids, names, the plan, carving, counters, /metrics, GET /server_info.
 */

/* Device: weights first, so that their addresses do not depend on the flags. */
POOL(WEIGHTS, DEVICE, s->weights_bytes, HELD(1, "the model"), "cannot: taken once, at start")

POOL(KV_PAGE, DEVICE, s->kv_page_bytes,
     HELD(KV_PAGES, "elastic: what the others leave, one full context + 1 at least"),
     "the request pauses until a page comes back (admit.c: never unsafe)")

POOL(MM_PAGE, DEVICE, s->mm_page_bytes,
     HELD(l->picture_pages, "being prefilled") HELD(l->picture_pages, "being encoded ahead")
     HELD(l->feature_cache_pages, "cached, evictable"),
     "the picture waits; the oldest started request never does")

POOL(PIXELS, DEVICE, s->pixels_bytes,
     HELD(l->picture_workers, "being filled") HELD(l->picture_workers, "being encoded"),
     "cannot: the engine pulls a picture only into a free slot")

POOL(ACT_TEXT, DEVICE, s->act_text_bytes, HELD(1, "the step that runs"), "cannot: one step at a time")
POOL(ACT_VISION, DEVICE, s->act_vision_bytes, HELD(1, "the picture being encoded"),
     "cannot: one picture is encoded at a time")
POOL(LOGITS, DEVICE, s->logits_bytes, HELD(1, "the step that runs"), "cannot: one step at a time")
POOL(OP_WORKSPACE, DEVICE, s->op_workspace_bytes, HELD(1, "the op that runs"), "cannot: one op at a time")
POOL(STEP_TABLES, DEVICE, s->step_tables_bytes, HELD(1, "the step that runs"), "cannot: one step at a time")

/* Host: requests and what they hold. */
POOL(REQUEST, HOST, s->request_bytes,
     HELD(l->running_requests, "computing or paused") HELD(l->queued_requests, "waiting to start")
     HELD(1, "/health_generate's own"),
     "503 queue_full")

POOL(TOKENS, HOST, l->context_tokens * sizeof(int32_t),
     HELD(l->running_requests, "running") HELD(l->queued_requests, "queued") HELD(1, "/health_generate's own"),
     "cannot: one for each REQUEST")

POOL(PAGE_LIST, HOST, l->context_pages * sizeof(uint32_t),
     HELD(l->running_requests, "started requests") HELD(1, "/health_generate's own"),
     "cannot: one for each running request")

POOL(KV_META, HOST, s->kv_meta_bytes, HELD(KV_PAGES, "KV pages"), "cannot: indexed by KV page")
POOL(PREFIX, HOST, s->prefix_bytes, HELD(CACHED_KV_PAGES, "KV pages"), "cannot: at most one for each KV page")

POOL(FEATURE, HOST, s->feature_bytes,
     HELD(l->picture_workers, "being prefilled") HELD(l->picture_workers, "being encoded ahead")
     HELD(l->feature_cache_pages, "cached, of a page each at least"),
     "the least recent cached picture is evicted")

POOL(BODY_SMALL, HOST, l->small_body_bytes,
     HELD(l->running_requests, "running") HELD(l->queued_requests, "queued: text never waits for a body"),
     "cannot: as many as REQUEST")

POOL(BODY_LARGE, HOST, l->large_body_bytes,
     HELD(l->large_bodies, "received, parsed, or waiting for the decoder"),
     "the connection is not read; 503 after --body-wait")

POOL(CONN, HOST, s->conn_bytes,
     HELD(l->connections, "open") HELD(1, "the one too many, while it is told so"),
     "503 too_many_connections")

/* Host: what the workers work in. */
POOL(TOKENIZER, HOST, s->tokenizer_bytes, HELD(1, "the tokenizer"), "cannot: taken once, at start")
POOL(INTAKE_SCRATCH, HOST, s->intake_scratch_bytes, HELD(l->intake_workers, "intake workers"),
     "cannot: one for each intake worker")
POOL(IMAGE_RGB, HOST, s->image_rgb_bytes, HELD(l->picture_workers, "the picture worker"),
     "cannot: one for each picture worker")
POOL(IMAGE_WORK, HOST, s->image_work_bytes, HELD(l->picture_workers, "the picture worker"),
     "400: the picture needs more than it may")
POOL(SAMPLE_WORK, HOST, s->sample_work_bytes, HELD(1, "the engine's thread, which samples row by row"),
     "cannot: taken once, at start")
POOL(ENGINE, HOST, s->engine_bytes, HELD(1, "slots, rows of a step, answers under way"), "cannot: taken once, at start")
POOL(QUEUE, HOST, s->queue_bytes, HELD(1, "all queues"), "cannot: rings are as long as what they carry is many")
POOL(LOG_LINE, HOST, LOG_SLOT_BYTES, HELD(LOG_LINES_MAX, "lines on their way"), "the line is dropped and counted")
POOL(STACK, HOST, STACK_BYTES, HELD(l->stacks, "threads, all but the first"), "cannot: one for each thread")

#undef POOL
#undef HELD
