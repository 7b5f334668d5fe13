/* fuzz_head: a head parsed byte by byte is the head parsed at once, and what it names lies inside it. */
#include "engine/http/head.h"
#include "tests/fuzz/fuzz.h"

static void check_span(const struct head *head, struct head_span span)
{
    fuzz_demand(span.length == 0 || span.at + span.length <= head->bytes, "spans lie in the head");
}

static void check_equal(const struct head *a, const struct head *b)
{
    fuzz_demand(a->state == b->state && a->err == b->err, "the same verdict");
    if (a->state == HEAD_DONE) {
        fuzz_demand(a->method == b->method && a->bytes == b->bytes && a->content_length == b->content_length,
                    "the same head");
        fuzz_demand(a->has_length == b->has_length && a->is_chunked == b->is_chunked, "the same framing");
        fuzz_demand(a->path.at == b->path.at && a->path.length == b->path.length, "the same path");
        fuzz_demand(a->is_keep_alive == b->is_keep_alive && a->wants_continue == b->wants_continue, "the same wishes");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *whole = fuzz_copy(data, bytes), *pieces = fuzz_copy(data, bytes);
    struct head at_once, by_byte;
    size_t step = bytes > 0 ? 1 + data[0] % 3 : 1;

    head_open(&at_once);
    head_open(&by_byte);
    (void)head_parse(&at_once, whole, bytes);
    for (size_t length = 0; length < bytes && by_byte.state == HEAD_MORE;) {
        length = length + step < bytes ? length + step : bytes;
        (void)head_parse(&by_byte, pieces, length);
    }
    if (bytes == 0) {
        (void)head_parse(&by_byte, pieces, 0);
    }
    check_equal(&at_once, &by_byte);
    if (at_once.state == HEAD_DONE) {
        fuzz_demand(at_once.bytes <= bytes && at_once.bytes <= HEAD_BYTES_MAX, "a head ends in its bytes");
        fuzz_demand(!(at_once.has_length && at_once.is_chunked), "one framing");
        fuzz_demand(at_once.path.length > 0, "there is a path");
        check_span(&at_once, at_once.path);
        check_span(&at_once, at_once.query);
        check_span(&at_once, at_once.authorization);
        check_span(&at_once, at_once.content_type);
        check_span(&at_once, at_once.asked_headers);
    }
    free(whole);
    free(pieces);
    return 0;
}
