/* test_head: a head is read the same however its bytes arrive; what two servers could read in two ways is refused. */
#include "engine/http/head.h"
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

static char buffer[HEAD_BYTES_MAX + 64];

/* Parses `text` cut at `split`, and behind it some bytes of a body. */
static enum head_state parse_split(struct head *head, const char *text, size_t split)
{
    size_t length = strlen(text);

    memset(buffer, 'B', sizeof buffer);
    memcpy(buffer, text, split);
    head_open(head);
    enum head_state state = head_parse(head, buffer, split);
    if (state == HEAD_MORE) {
        memcpy(buffer, text, length); /* a decoded path may have been overwritten by itself: only whole heads decode */
        state = head_parse(head, buffer, length + 8);
    }
    return state;
}

static enum head_state parse(struct head *head, const char *text)
{
    return parse_split(head, text, strlen(text));
}

static bool span_is(struct head_span span, const char *text)
{
    return span.length == strlen(text) && memcmp(buffer + span.at, text, span.length) == 0;
}

static const char usual[] = "POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                            "Authorization: Bearer k\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\n";

static void every_split_reads_the_same(void)
{
    struct head head;

    for (size_t split = 0; split <= sizeof usual - 1; split++) {
        CU_ASSERT_FATAL(parse_split(&head, usual, split) == HEAD_DONE);
        CU_ASSERT(head.bytes == sizeof usual - 1);
        CU_ASSERT(head.method == METHOD_POST);
        CU_ASSERT(span_is(head.path, "/v1/chat/completions"));
        CU_ASSERT(span_is(head.query, "x=1"));
        CU_ASSERT(span_is(head.content_type, "application/json"));
        CU_ASSERT(span_is(head.authorization, "Bearer k"));
        CU_ASSERT(head.has_length && head.content_length == 12);
        CU_ASSERT(head.wants_continue && head.is_keep_alive && !head.is_chunked);
    }
}

static void one_byte_at_a_time_reads_the_same(void)
{
    struct head head;
    size_t length = sizeof usual - 1;
    enum head_state state = HEAD_MORE;

    memcpy(buffer, usual, length);
    head_open(&head);
    for (size_t i = 1; i <= length; i++) {
        CU_ASSERT_FATAL(state == HEAD_MORE);
        CU_ASSERT(head_is_begun(&head) == (i > 1));
        state = head_parse(&head, buffer, i);
    }
    CU_ASSERT(state == HEAD_DONE);
    CU_ASSERT(span_is(head.path, "/v1/chat/completions"));
}

static void what_is_malformed_is_refused_at_every_split(void)
{
    static const struct {
        const char *text;
        enum err err;
    } rows[] = {
        {"GET / HTTP/1.1\nHost: a\n\n", ERR_BAD_HTTP},                     /* bare LF */
        {"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", ERR_BAD_HTTP}, /* folded line */
        {"GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", ERR_BAD_HTTP},      /* blank before colon */
        {"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", ERR_BAD_HTTP},        /* no name */
        {"GET / HTTP/1.1\r\nHost: a\r\nA\r\n\r\n", ERR_BAD_HTTP},          /* no colon */
        {"GET / HTTP/1.1\r\nHost: a\r\nA: \x01\r\n\r\n", ERR_BAD_HTTP},    /* control character */
        {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", ERR_BAD_HTTP},         /* bare CR */
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x10\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
         ERR_BAD_HTTP},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", ERR_BAD_HTTP},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", ERR_NOT_IMPLEMENTED},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", ERR_NOT_IMPLEMENTED},
        {"GET / HTTP/1.1\r\n\r\n", ERR_BAD_HTTP}, /* no Host */
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", ERR_BAD_HTTP},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", ERR_HTTP_VERSION},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ERR_HTTP_VERSION},
        {"GET / HTTP/1.1x\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"GET / http/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"GET /\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"GET a HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_HTTP},
        {"\r\n\r\n\r\n\r\n\r\n\r\n", ERR_BAD_HTTP},
        {"\x16\x03\x01\x02", ERR_BAD_HTTP}, /* TLS */
        {"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", ERR_BAD_HTTP},
    };
    struct head head;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t split = 0; split <= strlen(rows[i].text); split++) {
            enum head_state state = parse_split(&head, rows[i].text, split);
            if (state != HEAD_BAD || head.err != rows[i].err) {
                (void)fprintf(stderr, "row %zu split %zu: state %d err %d\n", i, split, (int)state, (int)head.err);
            }
            CU_ASSERT_FATAL(state == HEAD_BAD);
            CU_ASSERT_FATAL(head.err == rows[i].err);
        }
    }
}

static void what_is_unusual_but_allowed_is_read(void)
{
    struct head head;

    CU_ASSERT(parse(&head, "\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n") == HEAD_DONE);
    CU_ASSERT(parse(&head, "GET http://example.com/health?a HTTP/1.1\r\nHost: a\r\n\r\n") == HEAD_DONE);
    CU_ASSERT(span_is(head.path, "/health") && span_is(head.query, "a"));
    CU_ASSERT(parse(&head, "GET http://example.com HTTP/1.1\r\nHost: a\r\n\r\n") == HEAD_DONE);
    CU_ASSERT(span_is(head.path, "/"));
    CU_ASSERT(parse(&head, "GET /v1/models/Qwen%2fA%20b HTTP/1.1\r\nHost: a\r\n\r\n") == HEAD_DONE);
    CU_ASSERT(span_is(head.path, "/v1/models/Qwen/A b"));
    CU_ASSERT(parse(&head, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n") == HEAD_DONE);
    CU_ASSERT(head.method == METHOD_OPTIONS && span_is(head.path, "*"));
    CU_ASSERT(parse(&head, "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n") == HEAD_DONE);
    CU_ASSERT(head.method == METHOD_OTHER);
    CU_ASSERT(parse(&head, "POST / HTTP/1.1\r\nHOST: a\r\ntransfer-ENCODING:\tCHUNKED \r\n\r\n") == HEAD_DONE);
    CU_ASSERT(head.is_chunked);
    CU_ASSERT(parse(&head, "GET / HTTP/1.1\r\nHost: a\r\nX: \xff\tb\r\n\r\n") == HEAD_DONE);
    CU_ASSERT(parse(&head, "GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n") == HEAD_DONE);
    CU_ASSERT(head.has_unknown_expectation && !head.wants_continue);
}

static void the_connection_stays_as_version_and_header_say(void)
{
    struct head head;

    CU_ASSERT(parse(&head, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") == HEAD_DONE && head.is_keep_alive);
    CU_ASSERT(parse(&head, "GET / HTTP/1.9\r\nHost: a\r\n\r\n") == HEAD_DONE && head.is_keep_alive &&
              !head.is_http_1_0);
    CU_ASSERT(parse(&head, "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n") == HEAD_DONE &&
              !head.is_keep_alive);
    CU_ASSERT(parse(&head, "GET / HTTP/1.0\r\n\r\n") == HEAD_DONE && !head.is_keep_alive && head.is_http_1_0);
    CU_ASSERT(parse(&head, "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n") == HEAD_DONE && head.is_keep_alive);
    CU_ASSERT(parse(&head, "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n") == HEAD_DONE &&
              !head.is_keep_alive);
}

static void limits_are_refused_with_431(void)
{
    struct head head;
    size_t length = (size_t)snprintf(buffer, sizeof buffer, "GET / HTTP/1.1\r\nHost: a\r\nX: ");

    memset(buffer + length, 'x', sizeof buffer - length);
    head_open(&head);
    CU_ASSERT(head_parse(&head, buffer, HEAD_BYTES_MAX - 1) == HEAD_MORE);
    CU_ASSERT(head_parse(&head, buffer, sizeof buffer) == HEAD_BAD);
    CU_ASSERT(head.err == ERR_HEAD_TOO_LARGE);

    memcpy(buffer + HEAD_BYTES_MAX - 4, "\r\n\r\n", 4); /* exactly the limit is still fine */
    head_open(&head);
    CU_ASSERT(head_parse(&head, buffer, sizeof buffer) == HEAD_DONE);
    CU_ASSERT(head.bytes == HEAD_BYTES_MAX);

    for (int fields = HEAD_FIELDS_MAX; fields <= HEAD_FIELDS_MAX + 1; fields++) {
        length = (size_t)snprintf(buffer, sizeof buffer, "GET / HTTP/1.0\r\n");
        for (int i = 0; i < fields; i++) {
            length += (size_t)snprintf(buffer + length, sizeof buffer - length, "A: b\r\n");
        }
        length += (size_t)snprintf(buffer + length, sizeof buffer - length, "\r\n");
        head_open(&head);
        CU_ASSERT(head_parse(&head, buffer, length) == (fields <= HEAD_FIELDS_MAX ? HEAD_DONE : HEAD_BAD));
    }
    CU_ASSERT(head.err == ERR_HEAD_TOO_LARGE);
}

static void random_bytes_never_break_it(void)
{
    struct head head;
    uint32_t random = 1;

    for (int round = 0; round < 20000; round++) {
        size_t length = sizeof usual - 1;
        memcpy(buffer, usual, length);
        for (int i = 0; i < 3; i++) {
            random = random * 1664525u + 1013904223u;
            buffer[(random >> 8) % length] = (char)(random >> 24);
        }
        head_open(&head);
        for (size_t at = 0; head.state == HEAD_MORE && at <= length; at += 7) {
            (void)head_parse(&head, buffer, at);
        }
        (void)head_parse(&head, buffer, length);
        CU_ASSERT_FATAL(head.at <= length);
        CU_ASSERT_FATAL(!(head.has_length && head.is_chunked) || head.state != HEAD_DONE);
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_split_reads_the_same),
        CASE(one_byte_at_a_time_reads_the_same),
        CASE(what_is_malformed_is_refused_at_every_split),
        CASE(what_is_unusual_but_allowed_is_read),
        CASE(the_connection_stays_as_version_and_header_say),
        CASE(limits_are_refused_with_431),
        CASE(random_bytes_never_break_it),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "http/head", cases, NULL);
}
