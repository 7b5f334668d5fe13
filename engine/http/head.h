/* head: a strict parser of HTTP/1.1 and 1.0 request heads, one byte at a time if need be. */
#ifndef ENGINE_HTTP_HEAD_H
#define ENGINE_HTTP_HEAD_H

#include "config.h"
#include "engine/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits, so that a route can allow several. */
enum head_method {
    METHOD_GET = 1,
    METHOD_HEAD = 2,
    METHOD_POST = 4,
    METHOD_OPTIONS = 8,
    METHOD_OTHER = 16, /* a well-formed name that no route allows */
};

/* Part of the caller's buffer, by offset: the buffer may be moved as a whole between calls. length 0:
 * absent or empty. */
struct head_span {
    uint16_t at, length;
};

enum head_state { HEAD_MORE, HEAD_DONE, HEAD_BAD };

struct head {
    /* Valid once the state is HEAD_DONE. */
    enum head_method method;
    struct head_span path;  /* percent-decoded in place; begins with '/', or is "*" for OPTIONS */
    struct head_span query; /* behind '?', as sent; ignored by every route */
    struct head_span authorization, content_type, asked_headers; /* asked_headers: Access-Control-Request-Headers */
    uint64_t content_length;
    bool has_length, is_chunked; /* never both */
    bool is_http_1_0;
    bool is_keep_alive;  /* the connection may serve another request after this one */
    bool wants_continue; /* Expect: 100-continue */
    bool has_unknown_expectation;
    uint16_t bytes; /* of the head, its last empty line included: what follows is body */

    /* The parser's own. */
    enum head_state state;
    enum err err;         /* HEAD_BAD: why */
    uint16_t at, line_at; /* next byte; first byte of the line that it is in */
    uint16_t field_count, empty_count;
    bool has_request_line, has_cr, has_host, has_expect, says_close, says_keep_alive;
};

/* Expects the first byte of a head. */
void head_open(struct head *head);

/* Reads on in `bytes`, of which the first `length` have arrived (HEAD_BYTES_MAX is all that is ever looked at). The
 * bytes that were there at the last call must still be there. Bytes behind the head are not touched.
 * HEAD_MORE: not complete. HEAD_DONE: complete and well-formed. HEAD_BAD: head->err is BAD_HTTP, HEAD_TOO_LARGE,
 * NOT_IMPLEMENTED or HTTP_VERSION, and nothing behind is to be trusted: answer, then close. The last two are final.
 * Decoding the path overwrites part of the target. */
enum head_state head_parse(struct head *head, char *bytes, size_t length);

/* RFC 9110 5.6.2: true for the characters of a token (methods, names of fields). */
bool head_is_token_byte(unsigned char byte);

/* True if a request was begun: something but empty lines arrived. */
bool head_is_begun(const struct head *head);

#endif
