/* outbox: the bytes of an answer that the socket has not taken yet.
 *
 * Always true between calls: begin <= end <= CONN_WRITE_BYTES, and an empty outbox starts at 0, so most answers are
 * written without a move.
 */
#include "engine/http/outbox.h"

#include <assert.h>
#include <string.h>

void outbox_open(struct outbox *outbox)
{
    outbox->begin = outbox->end = outbox->frame_at = 0;
    outbox->is_in_frame = outbox->is_framed = false;
}

size_t outbox_waiting(const struct outbox *outbox)
{
    return outbox->end - outbox->begin;
}

size_t outbox_room(const struct outbox *outbox)
{
    return CONN_WRITE_BYTES - outbox_waiting(outbox);
}

char *outbox_place(struct outbox *outbox)
{
    if (outbox->begin > 0) {
        memmove(outbox->bytes, outbox->bytes + outbox->begin, outbox_waiting(outbox));
        outbox->end -= outbox->begin;
        outbox->frame_at -= outbox->is_in_frame ? outbox->begin : 0;
        outbox->begin = 0;
    }
    return outbox->bytes + outbox->end;
}

void outbox_wrote(struct outbox *outbox, size_t count)
{
    assert(count <= CONN_WRITE_BYTES - outbox->end);
    outbox->end += (uint32_t)count;
}

void outbox_add(struct outbox *outbox, const char *bytes, size_t count)
{
    assert(count <= outbox_room(outbox));
    memcpy(outbox_place(outbox), bytes, count);
    outbox_wrote(outbox, count);
}

void outbox_frame_begin(struct outbox *outbox, bool is_chunked)
{
    assert(!outbox->is_in_frame);
    (void)outbox_place(outbox);
    outbox->frame_at = outbox->end;
    outbox->is_in_frame = true;
    outbox->is_framed = is_chunked;
    if (is_chunked) {
        outbox_add(outbox, "0000\r\n", OUTBOX_FRAME_HEAD_BYTES);
    }
}

void outbox_frame_end(struct outbox *outbox)
{
    static const char digits[] = "0123456789abcdef";

    assert(outbox->is_in_frame);
    outbox->is_in_frame = false;
    if (!outbox->is_framed) {
        return;
    }
    size_t content = outbox->end - outbox->frame_at - OUTBOX_FRAME_HEAD_BYTES;
    if (content == 0) {
        outbox->end = outbox->frame_at;
        return;
    }
    assert(content <= 0xffff);
    for (int i = 0; i < 4; i++) {
        outbox->bytes[outbox->frame_at + (uint32_t)i] = digits[(content >> (12 - 4 * i)) & 15];
    }
    outbox_add(outbox, "\r\n", 2);
}

void outbox_last_chunk(struct outbox *outbox)
{
    outbox_add(outbox, "0\r\n\r\n", 5);
}

void outbox_sent(struct outbox *outbox, size_t count)
{
    assert(!outbox->is_in_frame);
    assert(count <= outbox_waiting(outbox));
    outbox->begin += (uint32_t)count;
    if (outbox->begin == outbox->end) {
        outbox->begin = outbox->end = 0;
    }
}
