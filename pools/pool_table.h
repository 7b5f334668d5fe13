/* Every pool of the server, one row each. Data only, so no include guard: define POOL, include, done.
 *
 *     POOL(NAME, domain, element_bytes, count, when_empty)
 *
 * element_bytes and count may use `s` (struct pool_sizes: what the model and the records measure), `l` (struct
 * pool_limits: what the flags allow), KV_PAGES (the elastic count, as solved; CACHED_KV_PAGES is the
 * same with a prefix cache and 0 without) and nothing else. A count is a sum, and
 * every term names its holder. `when_empty` says what a refused get becomes; a pool that cannot run dry says why.
 * Included for: ids, names, the plan, carving, counters, /metrics, GET /server_info, the README's table.
 */

/* Device: weights first, so that their addresses do not depend on the flags. */
POOL(WEIGHTS, DEVICE, s->weights_bytes, 1, "cannot: taken once, at start")

POOL(KV_PAGE, DEVICE, s->kv_page_bytes,
     KV_PAGES, /* the one elastic row: it takes what the others leave; at least one full context + 1 */
     "the request pauses until a page comes back (admit.c: never unsafe)")

POOL(MM_PAGE, DEVICE, s->mm_page_bytes,
     l->picture_pages              /* the picture being prefilled */
         + l->picture_pages        /* the next one, being encoded */
         + l->feature_cache_pages, /* kept for repeated pictures, evictable */
     "the picture waits; the oldest started request never does")

POOL(PIXELS, DEVICE, s->pixels_bytes,
     l->picture_workers       /* being filled */
         + l->picture_workers, /* being encoded */
     "cannot: the engine pulls a picture only into a free slot")

POOL(ACT_TEXT, DEVICE, s->act_text_bytes, 1, "cannot: one step at a time")
POOL(ACT_VISION, DEVICE, s->act_vision_bytes, 1, "cannot: one picture is encoded at a time")
POOL(LOGITS, DEVICE, s->logits_bytes, 1, "cannot: one step at a time")
POOL(OP_WORKSPACE, DEVICE, s->op_workspace_bytes, 1, "cannot: one op at a time")
POOL(STEP_TABLES, DEVICE, s->step_tables_bytes, 1, "cannot: one step at a time")

/* Host: requests and what they hold. */
POOL(REQUEST, HOST, s->request_bytes,
     l->running_requests      /* computing or paused */
         + l->queued_requests /* waiting to start */
         + 1,                 /* /health_generate's own */
     "503 queue_full")

POOL(TOKENS, HOST, l->context_tokens * sizeof(int32_t),
     l->running_requests + l->queued_requests + 1, /* prompt and answer, in place */
     "cannot: one for each REQUEST")

POOL(PAGE_LIST, HOST, l->context_pages * sizeof(uint32_t),
     l->running_requests + 1, /* page numbers of a started request; /health_generate's own */
     "cannot: one for each running request")

POOL(KV_META, HOST, s->kv_meta_bytes, KV_PAGES, "cannot: indexed by KV page")
POOL(PREFIX, HOST, s->prefix_bytes, CACHED_KV_PAGES, "cannot: at most one for each KV page")

POOL(FEATURE, HOST, s->feature_bytes,
     l->picture_workers            /* the picture being prefilled */
         + l->picture_workers      /* the next one, being encoded */
         + l->feature_cache_pages, /* a cached picture holds at least one page */
     "the least recent cached picture is evicted")

POOL(BODY_SMALL, HOST, l->small_body_bytes,
     l->running_requests + l->queued_requests, /* one for each REQUEST: text never waits for a body */
     "cannot: as many as REQUEST")

POOL(BODY_LARGE, HOST, l->large_body_bytes,
     l->large_bodies, /* being received, parsed, or waiting for their last picture to be decoded */
     "the connection is not read; 503 after --body-wait")

POOL(CONN, HOST, s->conn_bytes,
     l->connections /* open */
         + 1,       /* the one too many, while it is told so */
     "503 too_many_connections")

/* Host: what the workers work in. */
POOL(TOKENIZER, HOST, s->tokenizer_bytes, 1, "cannot: taken once, at start")
POOL(INTAKE_SCRATCH, HOST, s->intake_scratch_bytes, l->intake_workers, "cannot: one for each intake worker")
POOL(IMAGE_RGB, HOST, s->image_rgb_bytes, l->picture_workers, "cannot: one for each picture worker")
POOL(IMAGE_WORK, HOST, s->image_work_bytes, l->picture_workers, "400: the picture needs more than it may")
POOL(SAMPLE_WORK, HOST, s->sample_work_bytes, l->compute_threads, "cannot: one for each compute thread")
POOL(QUEUE, HOST, s->queue_bytes, 1, "cannot: rings are as long as what they carry is many")
POOL(LOG_LINE, HOST, LOG_SLOT_BYTES, LOG_LINES_MAX, "the line is dropped and counted")
POOL(STACK, HOST, STACK_BYTES, l->stacks, "cannot: one for each thread")

#undef POOL
