/* test_body: content comes out the same however framing and bytes are cut; broken framing and too much are refused. */
#include "engine/http/body.h"
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

static unsigned char out[4096];

static void open_chunked(struct body *body, uint64_t limit)
{
    struct head head = {.is_chunked = true};
    body_open(body, &head, limit);
}

/* Feeds `text` in pieces of `step` bytes with `room` bytes of room at a time; *taken counts what was used. */
static enum body_state feed(struct body *body, const char *text, size_t step, size_t room, size_t *taken,
                            size_t *content)
{
    size_t length = strlen(text);
    enum body_state state = BODY_MORE;

    *taken = *content = 0;
    while ((state == BODY_MORE || state == BODY_FULL) && *taken < length) {
        size_t used, written;
        size_t count = length - *taken < step ? length - *taken : step;
        state = body_feed(body, text + *taken, count, &used, out + *content, room, &written);
        *taken += used;
        *content += written;
    }
    return state;
}

static const char chunked[] =
    "5;name=\"v\"\r\nhello\r\n0001\r\n,\r\nB\r\n world 1234\r\n0;x\r\nTrailer: 1\r\nA: b\r\n\r\nGET /";
static const char content_text[] = "hello, world 1234";

static void chunks_cut_anywhere_give_the_same_content(void)
{
    for (size_t step = 1; step < sizeof chunked; step++) {
        for (size_t room = 1; room < 20; room++) {
            struct body body;
            size_t taken, content;
            open_chunked(&body, 100);
            CU_ASSERT_FATAL(feed(&body, chunked, step, room, &taken, &content) == BODY_DONE);
            CU_ASSERT_FATAL(content == sizeof content_text - 1);
            CU_ASSERT(memcmp(out, content_text, content) == 0);
            CU_ASSERT(strcmp(chunked + taken, "GET /") == 0); /* the next request is untouched */
            CU_ASSERT(body.taken_bytes == content);
        }
    }
}

static void broken_chunks_are_refused(void)
{
    static const char *const texts[] = {
        "x\r\n",
        "\r\n",
        "5\nhello",
        "5 \r\nhello\r\n",
        "-5\r\n",
        "0x5\r\n",
        "5\r\nhelloX",
        "5\r\nhello\n",
        "5\r\nhello\rX",
        "FFFFFFFFFFFFFFFFF\r\n",
        "8000000000000000\r\n",
        "5\rX",
        ";x\r\n",
        "5;\x01\r\n",
        "0\r\nA: b\n\r\n",
        "0\r\n\rX",
        "0\r\nA: \x7f\r\n\r\n",
        "0\r\nbad trailer\r\n\r\n",
        "0\r\n: b\r\n\r\n",
        "0\r\nA\r\n\r\n",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (size_t step = 1; step < 8; step++) {
            struct body body;
            size_t taken, content;
            open_chunked(&body, UINT64_MAX / 4);
            enum body_state state = feed(&body, texts[i], step, sizeof out, &taken, &content);
            if (state != BODY_BAD) {
                (void)fprintf(stderr, "text %zu\n", i);
            }
            CU_ASSERT(state == BODY_BAD);
            CU_ASSERT(body.err == ERR_BAD_HTTP);
        }
    }
}

static void too_much_is_refused_before_it_is_read(void)
{
    struct body body;
    size_t taken, content;
    struct head head = {.has_length = true, .content_length = 101};

    body_open(&body, &head, 100);
    CU_ASSERT(body.err == ERR_BODY_TOO_LARGE);
    CU_ASSERT(feed(&body, "x", 1, 10, &taken, &content) == BODY_BAD || taken == 0);

    open_chunked(&body, 10);
    CU_ASSERT(feed(&body, "6\r\nabcdef\r\n5\r\n", 99, sizeof out, &taken, &content) == BODY_BAD);
    CU_ASSERT(body.err == ERR_BODY_TOO_LARGE);
    CU_ASSERT(content == 6);
    open_chunked(&body, 10);
    CU_ASSERT(feed(&body, "6\r\nabcdef\r\n4\r\nghij\r\n0\r\n\r\n", 99, sizeof out, &taken, &content) == BODY_DONE);
}

static void framing_beside_the_content_is_bounded(void)
{
    static char line[HEAD_BYTES_MAX + 2048];
    struct body body;
    size_t taken, content;

    memset(line, 'x', sizeof line - 1);
    memcpy(line, "1;", 2);
    open_chunked(&body, 10);
    CU_ASSERT(feed(&body, line, 64, 10, &taken, &content) == BODY_BAD);
    CU_ASSERT(taken <= CHUNK_LINE_BYTES_MAX + 64);
    memcpy(line, "0\r\nx:", 5);
    open_chunked(&body, 10);
    CU_ASSERT(feed(&body, line, 64, 10, &taken, &content) == BODY_BAD);
    CU_ASSERT(taken <= HEAD_BYTES_MAX + 64 + 3);
}

static void a_length_takes_exactly_its_bytes(void)
{
    struct body body;
    size_t taken, content;
    struct head head = {.has_length = true, .content_length = 5};

    body_open(&body, &head, 5);
    CU_ASSERT(body_direct_bytes(&body) == 5);
    CU_ASSERT(feed(&body, "helloGET", 2, 3, &taken, &content) == BODY_DONE);
    CU_ASSERT(taken == 5 && content == 5);

    body_open(&body, &head, 5);
    CU_ASSERT(body_took(&body, 4) == BODY_MORE);
    CU_ASSERT(body_took(&body, 1) == BODY_DONE);
    CU_ASSERT(body_direct_bytes(&body) == 0);

    head.has_length = false; /* no length, no coding: no body */
    body_open(&body, &head, 5);
    CU_ASSERT(body_feed(&body, "GET", 3, &taken, out, 3, &content) == BODY_DONE);
    CU_ASSERT(taken == 0);
}

static void content_of_a_chunk_may_be_received_directly(void)
{
    struct body body;
    size_t taken, content;

    open_chunked(&body, 100);
    CU_ASSERT(body_direct_bytes(&body) == 0);
    CU_ASSERT(feed(&body, "5\r\n", 99, 99, &taken, &content) == BODY_MORE);
    CU_ASSERT(body_direct_bytes(&body) == 5);
    CU_ASSERT(body_took(&body, 5) == BODY_MORE);
    CU_ASSERT(body_direct_bytes(&body) == 0);
    CU_ASSERT(feed(&body, "\r\n0\r\n\r\n", 99, 99, &taken, &content) == BODY_DONE);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(chunks_cut_anywhere_give_the_same_content),
        CASE(broken_chunks_are_refused),
        CASE(too_much_is_refused_before_it_is_read),
        CASE(framing_beside_the_content_is_bounded),
        CASE(a_length_takes_exactly_its_bytes),
        CASE(content_of_a_chunk_may_be_received_directly),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "http/body", cases, NULL);
}
