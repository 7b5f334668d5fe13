/* outbox: the bytes of an answer that the socket has not taken yet. Fixed size; answers are made piece by piece into
 * it. */
#ifndef ENGINE_HTTP_OUTBOX_H
#define ENGINE_HTTP_OUTBOX_H

#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OUTBOX_FRAME_HEAD_BYTES = 6, /* "0000\r\n": a chunk's size in four digits, filled in when it is known */
    OUTBOX_FRAME_BYTES = OUTBOX_FRAME_HEAD_BYTES + 2,
};

struct outbox {
    uint32_t begin, end; /* bytes[begin .. end) wait for the socket */
    uint32_t frame_at;   /* of the open frame's first byte; only between frame_begin and frame_end */
    bool is_in_frame, is_framed;
    char bytes[CONN_WRITE_BYTES];
};

void outbox_open(struct outbox *outbox);

/* Bytes that wait, and bytes that still fit. */
size_t outbox_waiting(const struct outbox *outbox);
size_t outbox_room(const struct outbox *outbox);

/* Where the next bytes go: outbox_room() of them, in one piece. Moves what waits to the front if it must. */
char *outbox_place(struct outbox *outbox);

/* `count` bytes were written at outbox_place. */
void outbox_wrote(struct outbox *outbox, size_t count);

/* Copies; asserts that it fits. */
void outbox_add(struct outbox *outbox, const char *bytes, size_t count);

/* Brackets one piece of body. `is_chunked`: as a chunk of the chunked coding (an empty piece is left out, since it
 * would end the body); otherwise the bytes stand alone. Needs OUTBOX_FRAME_BYTES beside the content. */
void outbox_frame_begin(struct outbox *outbox, bool is_chunked);
void outbox_frame_end(struct outbox *outbox);

/* The end of a chunked body. */
void outbox_last_chunk(struct outbox *outbox);

/* The socket took `count` of the waiting bytes. */
void outbox_sent(struct outbox *outbox, size_t count);

#endif
