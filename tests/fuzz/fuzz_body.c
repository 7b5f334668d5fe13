/* fuzz_body: any split of the framed bytes, and any room for the content, gives the same content.
 *
 * The first byte picks the framing (even: chunked) and the sizes of the pieces.
 */
#include "engine/http/body.h"
#include "tests/fuzz/fuzz.h"

enum { CONTENT_BYTES_MAX = 64 * 1024, LIMIT_BYTES = 10000 };

struct taken {
    enum body_state state;
    size_t in_bytes, content_bytes;
    unsigned char content[CONTENT_BYTES_MAX];
};

static void feed(const struct head *head, const char *in, size_t bytes, size_t step, size_t room, struct taken *taken)
{
    struct body body;

    taken->state = BODY_MORE;
    taken->in_bytes = taken->content_bytes = 0;
    body_open(&body, head, LIMIT_BYTES);
    while (taken->state == BODY_FULL || (taken->state == BODY_MORE && taken->in_bytes < bytes)) {
        size_t have = bytes - taken->in_bytes < step ? bytes - taken->in_bytes : step, took = 0, wrote = 0;
        char *piece = fuzz_copy(in + taken->in_bytes, have);
        unsigned char *out = malloc(room);
        fuzz_demand(out != NULL, "there is memory");
        taken->state = body_feed(&body, piece, have, &took, out, room, &wrote);
        fuzz_demand(took <= have && wrote <= room, "no more than was given");
        fuzz_demand(taken->state == BODY_BAD || taken->state == BODY_DONE || took + wrote > 0 || have == 0,
                    "every call gets on");
        memcpy(taken->content + taken->content_bytes, out, wrote);
        taken->in_bytes += took;
        taken->content_bytes += wrote;
        free(piece);
        free(out);
        if (took + wrote == 0) {
            break;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct taken one, other;
    struct head head = {.state = HEAD_DONE};

    if (bytes < 2 || bytes > CONTENT_BYTES_MAX) {
        return 0;
    }
    head.is_chunked = data[0] % 2 == 0;
    head.has_length = !head.is_chunked;
    head.content_length = head.has_length ? data[1] * 50U : 0;
    feed(&head, (const char *)data + 1, bytes - 1, bytes, CONTENT_BYTES_MAX, &one);
    feed(&head, (const char *)data + 1, bytes - 1, 1 + data[0] % 7, 1 + data[0] % 5, &other);
    fuzz_demand(one.state == other.state, "the same verdict");
    if (one.state != BODY_BAD) {
        fuzz_demand(one.in_bytes == other.in_bytes && one.content_bytes == other.content_bytes, "the same lengths");
        fuzz_demand(memcmp(one.content, other.content, one.content_bytes) == 0, "the same content");
        fuzz_demand(one.content_bytes <= LIMIT_BYTES, "the limit holds");
    }
    return 0;
}
