/* sse: one server-sent event, `data: {...}` and an empty line, in a frame of its own. */
#ifndef ENGINE_HTTP_SSE_H
#define ENGINE_HTTP_SSE_H

#include "engine/http/outbox.h"
#include "engine/json_out.h"

enum {
    SSE_EVENT_BYTES_MAX = 9 * 1024 + 512,                          /* JSON of one event; a refusal's is the longest */
    SSE_ROOM_BYTES = SSE_EVENT_BYTES_MAX + 8 + OUTBOX_FRAME_BYTES, /* in the outbox, before one is begun */
};

/* Begins an event in the outbox and opens `json` in its place. */
void sse_begin(struct outbox *outbox, bool is_chunked, struct json_out *json);

/* Ends it; asserts that the JSON is whole. */
void sse_end(struct outbox *outbox, const struct json_out *json);

/* `data: [DONE]`, and the end of a chunked body. */
void sse_done(struct outbox *outbox, bool is_chunked);

#endif
