/* test_sse: an event is one data line and an empty one, in one chunk; the end is [DONE]. */
#include "engine/http/sse.h"
#include "tests/harness.h"

#include <string.h>

static struct outbox outbox;

static void write_event(bool is_chunked)
{
    struct json_out json;

    outbox_open(&outbox);
    sse_begin(&outbox, is_chunked, &json);
    json_out_object_begin(&json);
    json_out_key_text(&json, "a", "b\n");
    json_out_object_end(&json);
    sse_end(&outbox, &json);
    sse_done(&outbox, is_chunked);
    outbox.bytes[outbox.end] = '\0';
}

static void a_chunked_event_is_one_chunk(void)
{
    write_event(true);
    CU_ASSERT_STRING_EQUAL(outbox.bytes, "0013\r\ndata: {\"a\":\"b\\n\"}\n\n\r\n000e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
}

static void a_bare_event_has_no_frame(void)
{
    write_event(false);
    CU_ASSERT_STRING_EQUAL(outbox.bytes, "data: {\"a\":\"b\\n\"}\n\ndata: [DONE]\n\n");
}

static void the_longest_event_and_the_end_fit_an_empty_outbox(void)
{
    struct json_out json;
    static char text[SSE_EVENT_BYTES_MAX];

    memset(text, 'x', sizeof text);
    outbox_open(&outbox);
    sse_begin(&outbox, true, &json);
    json_out_string(&json, text, SSE_EVENT_BYTES_MAX - 2);
    sse_end(&outbox, &json);
    sse_done(&outbox, true);
    CU_ASSERT(outbox_waiting(&outbox) <= CONN_WRITE_BYTES);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_chunked_event_is_one_chunk),
        CASE(a_bare_event_has_no_frame),
        CASE(the_longest_event_and_the_end_fit_an_empty_outbox),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "http/sse", cases, NULL);
}
