/* body: takes the framing off a request body, by Content-Length or chunked, as its bytes arrive. */
#ifndef ENGINE_HTTP_BODY_H
#define ENGINE_HTTP_BODY_H

#include "engine/err.h"
#include "engine/http/head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum body_state {
    BODY_MORE, /* wants bytes */
    BODY_FULL, /* wants room: the output is full and more content comes */
    BODY_DONE, /* complete; what follows is the next request */
    BODY_BAD   /* body->err is BAD_HTTP or BODY_TOO_LARGE */
};

struct body {
    uint64_t limit_bytes; /* of content */
    uint64_t taken_bytes; /* of content so far */
    uint64_t left_bytes;  /* of content in the part that is being read: the body, or one chunk */
    bool is_chunked;
    uint8_t part; /* enum body_part: of a chunked body, what the next byte belongs to */
    bool has_digit, has_cr, is_in_extension, has_colon;
    uint16_t line_bytes; /* of the size line, extensions included */
    uint16_t trailer_bytes, trailer_line_bytes;
    enum err err;
};

/* A body as `head` frames it, of at most `limit_bytes` of content. A Content-Length above the limit is BODY_TOO_LARGE
 * at once; body_feed then says BODY_BAD. */
void body_open(struct body *body, const struct head *head, uint64_t limit_bytes);

/* Takes framed bytes from `in`, writes content to `out` (room for `room` bytes), and says how many of both; any split
 * of the input gives the same content. Never takes a byte behind the body. */
enum body_state body_feed(struct body *body, const char *in, size_t in_bytes, size_t *in_taken, unsigned char *out,
                          size_t room, size_t *out_bytes);

/* For bodies that are read straight into their place: how many content bytes may be received without a look at the
 * framing (0 when the next byte is framing), and that `count` of them were. */
size_t body_direct_bytes(const struct body *body);
enum body_state body_took(struct body *body, size_t count);

#endif
