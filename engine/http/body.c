/* body: takes the framing off a request body, by Content-Length or chunked, as its bytes arrive.
 *
 * Always true between calls: taken_bytes + left_bytes never exceeds limit_bytes, so content can be received into a
 * place of limit_bytes without a further check; framing beside the content is bounded per line and for all trailers
 * together.
 */
#include "engine/http/body.h"

#include <assert.h>
#include <string.h>

enum body_part {
    PART_SIZE,        /* hexadecimal digits, extensions, CRLF */
    PART_CONTENT,     /* left_bytes of it */
    PART_CONTENT_END, /* the CRLF behind a chunk */
    PART_TRAILER,     /* lines up to an empty one; ignored */
    PART_END,
};

void body_open(struct body *body, const struct head *head, uint64_t limit_bytes)
{
    assert(!(head->is_chunked && head->has_length));
    memset(body, 0, sizeof *body);
    body->limit_bytes = limit_bytes;
    body->is_chunked = head->is_chunked;
    if (head->is_chunked) {
        body->part = PART_SIZE;
    } else {
        body->left_bytes = head->has_length ? head->content_length : 0;
        body->part = body->left_bytes > 0 ? PART_CONTENT : PART_END;
        if (body->left_bytes > limit_bytes) {
            body->err = ERR_BODY_TOO_LARGE;
            body->left_bytes = 0;
        }
    }
}

/* The size line is over: a chunk follows, or the trailers. */
static enum err end_size_line(struct body *body)
{
    if (!body->has_digit) {
        return ERR_BAD_HTTP;
    }
    if (body->left_bytes > body->limit_bytes - body->taken_bytes) {
        body->left_bytes = 0;
        return ERR_BODY_TOO_LARGE;
    }
    body->part = body->left_bytes > 0 ? PART_CONTENT : PART_TRAILER;
    return ERR_OK;
}

static enum err take_size_byte(struct body *body, unsigned char byte)
{
    if (++body->line_bytes > CHUNK_LINE_BYTES_MAX) {
        return ERR_BAD_HTTP;
    }
    if (body->has_cr) {
        body->has_cr = false;
        return byte == '\n' ? end_size_line(body) : ERR_BAD_HTTP;
    }
    if (byte == '\r') {
        body->has_cr = true;
        return ERR_OK;
    }
    if (body->is_in_extension) {
        return (byte < 0x20 && byte != '\t') || byte == 0x7f ? ERR_BAD_HTTP : ERR_OK;
    }
    if (byte == ';' && body->has_digit) {
        body->is_in_extension = true;
        return ERR_OK;
    }
    unsigned digit;
    if (byte >= '0' && byte <= '9') {
        digit = byte - (unsigned)'0';
    } else if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f') {
        digit = (unsigned)(byte | 0x20) - 'a' + 10;
    } else {
        return ERR_BAD_HTTP;
    }
    body->has_digit = true;
    if (body->left_bytes > (INT64_MAX >> 4)) {
        return ERR_BAD_HTTP;
    }
    body->left_bytes = body->left_bytes * 16 + digit;
    return ERR_OK;
}

/* The CRLF behind a chunk's content. */
static enum err take_content_end(struct body *body, unsigned char byte)
{
    if (byte != (body->has_cr ? '\n' : '\r')) {
        return ERR_BAD_HTTP;
    }
    if (body->has_cr) {
        body->part = PART_SIZE;
        body->line_bytes = 0;
        body->has_digit = body->is_in_extension = false;
    }
    body->has_cr = !body->has_cr;
    return ERR_OK;
}

static enum err take_trailer_byte(struct body *body, unsigned char byte)
{
    if (++body->trailer_bytes > HEAD_BYTES_MAX) {
        return ERR_BAD_HTTP;
    }
    if (body->has_cr) {
        if (byte != '\n') {
            return ERR_BAD_HTTP;
        }
        body->part = body->trailer_line_bytes == 0 ? PART_END : PART_TRAILER;
        body->trailer_line_bytes = 0;
        body->has_cr = body->has_colon = false;
        return ERR_OK;
    }
    if (byte == '\r') {
        body->has_cr = true;
        return body->has_colon || body->trailer_line_bytes == 0 ? ERR_OK : ERR_BAD_HTTP;
    }
    body->trailer_line_bytes++;
    if (body->has_colon) {
        return (byte < 0x20 && byte != '\t') || byte == 0x7f ? ERR_BAD_HTTP : ERR_OK;
    }
    body->has_colon = byte == ':' && body->trailer_line_bytes > 1;
    return body->has_colon || head_is_token_byte(byte) ? ERR_OK : ERR_BAD_HTTP;
}

static enum err take_framing_byte(struct body *body, unsigned char byte)
{
    switch ((enum body_part)body->part) {
    case PART_SIZE:
        return take_size_byte(body, byte);
    case PART_CONTENT_END:
        return take_content_end(body, byte);
    case PART_TRAILER:
        return take_trailer_byte(body, byte);
    case PART_CONTENT:
    case PART_END:
        break;
    }
    assert(false); /* no framing there */
    return ERR_BAD_HTTP;
}

static enum body_state state_of(const struct body *body)
{
    if (body->err != ERR_OK) {
        return BODY_BAD;
    }
    return body->part == PART_END ? BODY_DONE : BODY_MORE;
}

size_t body_direct_bytes(const struct body *body)
{
    return body->err == ERR_OK && body->part == PART_CONTENT ? (size_t)body->left_bytes : 0;
}

enum body_state body_took(struct body *body, size_t count)
{
    assert(body->part == PART_CONTENT);
    assert(count <= body->left_bytes);
    body->taken_bytes += count;
    body->left_bytes -= count;
    if (body->left_bytes == 0) {
        body->part = body->is_chunked ? PART_CONTENT_END : PART_END;
    }
    return state_of(body);
}

enum body_state body_feed(struct body *body, const char *in, size_t in_bytes, size_t *in_taken, unsigned char *out,
                          size_t room, size_t *out_bytes)
{
    *in_taken = *out_bytes = 0;
    while (state_of(body) == BODY_MORE && *in_taken < in_bytes) {
        size_t direct = body_direct_bytes(body);
        if (direct == 0) {
            body->err = take_framing_byte(body, (unsigned char)in[(*in_taken)++]);
            continue;
        }
        size_t count = in_bytes - *in_taken;
        count = count < direct ? count : direct;
        count = count < room - *out_bytes ? count : room - *out_bytes;
        if (count == 0) {
            return BODY_FULL;
        }
        memcpy(out + *out_bytes, in + *in_taken, count);
        *in_taken += count;
        *out_bytes += count;
        (void)body_took(body, count);
    }
    assert(*out_bytes <= room && *in_taken <= in_bytes);
    return state_of(body);
}
