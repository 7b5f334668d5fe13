/* sse: one server-sent event, `data: {...}` and an empty line, in a frame of its own. */
#include "engine/http/sse.h"

#include <assert.h>

static const char prefix[] = "data: ";

void sse_begin(struct outbox *outbox, bool is_chunked, struct json_out *json)
{
    assert(outbox_room(outbox) >= SSE_ROOM_BYTES);
    outbox_frame_begin(outbox, is_chunked);
    outbox_add(outbox, prefix, sizeof prefix - 1);
    json_out_open(json, outbox_place(outbox), SSE_EVENT_BYTES_MAX);
}

void sse_end(struct outbox *outbox, const struct json_out *json)
{
    assert(json_out_is_whole(json));
    outbox_wrote(outbox, json->length);
    outbox_add(outbox, "\n\n", 2);
    outbox_frame_end(outbox);
}

void sse_done(struct outbox *outbox, bool is_chunked)
{
    static const char done[] = "data: [DONE]\n\n";

    outbox_frame_begin(outbox, is_chunked);
    outbox_add(outbox, done, sizeof done - 1);
    outbox_frame_end(outbox);
    if (is_chunked) {
        outbox_last_chunk(outbox);
    }
}
