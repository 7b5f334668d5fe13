/* test_outbox: bytes leave in the order they came, frames say their size, and nothing is lost when the room moves. */
#include "engine/http/outbox.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

static struct outbox outbox;

static void random_adds_and_sends_keep_the_order(void)
{
    uint32_t random = 7;
    unsigned char next_in = 0, next_out = 0;

    outbox_open(&outbox);
    for (int round = 0; round < 20000; round++) {
        random = random * 1664525u + 1013904223u;
        size_t count = (random >> 8) % 3000;
        if ((random >> 30) % 2 == 0 && count <= outbox_room(&outbox)) {
            char bytes[3000];
            for (size_t i = 0; i < count; i++) {
                bytes[i] = (char)next_in++;
            }
            outbox_add(&outbox, bytes, count);
        } else {
            count = count < outbox_waiting(&outbox) ? count : outbox_waiting(&outbox);
            for (size_t i = 0; i < count; i++) {
                CU_ASSERT_FATAL((unsigned char)outbox.bytes[outbox.begin + i] == next_out++);
            }
            outbox_sent(&outbox, count);
        }
        CU_ASSERT_FATAL(outbox_room(&outbox) + outbox_waiting(&outbox) == CONN_WRITE_BYTES);
    }
}

static void frames_are_chunks_of_their_size(void)
{
    outbox_open(&outbox);
    outbox_add(&outbox, "head", 4);
    outbox_sent(&outbox, 2); /* what waits moves while the frame is open */
    outbox_frame_begin(&outbox, true);
    outbox_add(&outbox, "hello", 5);
    (void)outbox_place(&outbox);
    outbox_frame_end(&outbox);
    outbox_frame_begin(&outbox, true);
    outbox_frame_end(&outbox); /* nothing: no chunk, which would end the body */
    outbox_frame_begin(&outbox, false);
    outbox_add(&outbox, "bare", 4);
    outbox_frame_end(&outbox);
    outbox_last_chunk(&outbox);
    static const char expected[] = "ad0005\r\nhello\r\nbare0\r\n\r\n";
    CU_ASSERT(outbox_waiting(&outbox) == sizeof expected - 1);
    CU_ASSERT(memcmp(outbox.bytes + outbox.begin, expected, sizeof expected - 1) == 0);
}

static void large_frames_have_four_digits(void)
{
    outbox_open(&outbox);
    outbox_frame_begin(&outbox, true);
    memset(outbox_place(&outbox), 'x', 12345);
    outbox_wrote(&outbox, 12345);
    outbox_frame_end(&outbox);
    CU_ASSERT(strtoul(outbox.bytes, NULL, 16) == 12345);
}

static void too_much(void)
{
    static char bytes[CONN_WRITE_BYTES + 1];
    outbox_open(&outbox);
    outbox_add(&outbox, bytes, sizeof bytes);
}

static void overflow_is_caught(void)
{
    CU_ASSERT(harness_aborts(too_much));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(random_adds_and_sends_keep_the_order),
        CASE(frames_are_chunks_of_their_size),
        CASE(large_frames_have_four_digits),
        CASE(overflow_is_caught),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "http/outbox", cases, NULL);
}
