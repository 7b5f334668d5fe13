/* bench_answer: reads one HTTP answer as its bytes arrive, whatever their framing. */
#ifndef TOOLS_BENCH_ANSWER_H
#define TOOLS_BENCH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

enum answer_state {
    ANSWER_HEAD,
    ANSWER_COUNTED,
    ANSWER_CHUNK_SIZE,
    ANSWER_CHUNK,
    ANSWER_CHUNK_END,
    ANSWER_TRAILER,
    ANSWER_TO_CLOSE,
    ANSWER_DONE,
    ANSWER_BAD
};

struct answer {
    enum answer_state state;
    int status; /* of the status line */
    char *raw;  /* not yet decoded bytes */
    size_t raw_bytes, raw_capacity;
    char *body; /* decoded, NUL behind it */
    size_t body_bytes, body_capacity;
    size_t left; /* bytes still to come of a counted body or chunk */
};

/* Takes the next bytes from the socket; `bytes` 0 says that the peer closed. */
void answer_feed(struct answer *answer, const char *bytes, size_t byte_count);

/* True when nothing more is expected. */
bool answer_is_over(const struct answer *answer);

void answer_shut(struct answer *answer);

/* Grows `*buffer` to at least `bytes`; ends the program when there is no memory. */
void *grow(void *buffer, size_t *capacity, size_t bytes);

#endif
