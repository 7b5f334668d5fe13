/* bench_answer: reads one HTTP answer as its bytes arrive, whatever their framing.
 *
 * Always true between calls: raw holds only bytes that could not be decoded yet; body only grows.
 */
#include "tools/bench_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void *grow(void *buffer, size_t *capacity, size_t bytes)
{
    if (bytes <= *capacity) {
        return buffer;
    }
    size_t wanted = *capacity * 2 > bytes ? *capacity * 2 : bytes + 4096;
    void *grown = realloc(buffer, wanted);
    if (grown == NULL) {
        fprintf(stderr, "ashlar-bench: out of memory\n");
        exit(2);
    }
    *capacity = wanted;
    return grown;
}

static void append_body(struct answer *answer, const char *bytes, size_t byte_count)
{
    answer->body = grow(answer->body, &answer->body_capacity, answer->body_bytes + byte_count + 1);
    memcpy(answer->body + answer->body_bytes, bytes, byte_count);
    answer->body_bytes += byte_count;
    answer->body[answer->body_bytes] = '\0';
}

static void drop_raw(struct answer *answer, size_t byte_count)
{
    memmove(answer->raw, answer->raw + byte_count, answer->raw_bytes - byte_count);
    answer->raw_bytes -= byte_count;
    answer->raw[answer->raw_bytes] = '\0';
}

/* Value of a header field inside the head, or NULL. */
static const char *field(const char *head, const char *name)
{
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':') {
            return line + strlen(name) + 1 + strspn(line + strlen(name) + 1, " ");
        }
    }
    return NULL;
}

/* One step of decoding; false when more bytes are needed. */
static bool read_head(struct answer *answer)
{
    char *end = strstr(answer->raw, "\r\n\r\n");

    if (end == NULL) {
        return false;
    }
    end[2] = '\0';
    if (sscanf(answer->raw, "HTTP/1.%*c %d", &answer->status) != 1) {
        answer->state = ANSWER_BAD;
        return false;
    }
    const char *length = field(answer->raw, "Content-Length"), *coding = field(answer->raw, "Transfer-Encoding");
    if (answer->status == 100) {
        answer->state = ANSWER_HEAD;
    } else if (coding != NULL && strncasecmp(coding, "chunked", 7) == 0) {
        answer->state = ANSWER_CHUNK_SIZE;
    } else if (length != NULL) {
        answer->left = strtoul(length, NULL, 10);
        answer->state = answer->left == 0 ? ANSWER_DONE : ANSWER_COUNTED;
    } else {
        answer->state = ANSWER_TO_CLOSE;
    }
    drop_raw(answer, (size_t)(end + 4 - answer->raw));
    return answer->state != ANSWER_DONE;
}

static bool read_counted(struct answer *answer)
{
    size_t byte_count = answer->raw_bytes < answer->left ? answer->raw_bytes : answer->left;

    append_body(answer, answer->raw, byte_count);
    drop_raw(answer, byte_count);
    answer->left -= byte_count;
    if (answer->left > 0) {
        return false;
    }
    answer->state = answer->state == ANSWER_CHUNK ? ANSWER_CHUNK_END : ANSWER_DONE;
    return answer->state != ANSWER_DONE;
}

/* A line of the chunked framing: a size, the end of a chunk, a trailer. */
static bool read_line(struct answer *answer)
{
    char *end = strstr(answer->raw, "\r\n");

    if (end == NULL) {
        return false;
    }
    bool is_empty = end == answer->raw;
    if (answer->state == ANSWER_CHUNK_SIZE) {
        answer->left = strtoul(answer->raw, NULL, 16);
        answer->state = answer->left == 0 ? ANSWER_TRAILER : ANSWER_CHUNK;
    } else if (answer->state == ANSWER_CHUNK_END) {
        answer->state = is_empty ? ANSWER_CHUNK_SIZE : ANSWER_BAD;
    } else if (is_empty) {
        answer->state = ANSWER_DONE;
    }
    drop_raw(answer, (size_t)(end + 2 - answer->raw));
    return answer->state != ANSWER_DONE && answer->state != ANSWER_BAD;
}

static bool decode_step(struct answer *answer)
{
    switch (answer->state) {
    case ANSWER_HEAD:
        return read_head(answer);
    case ANSWER_COUNTED:
    case ANSWER_CHUNK:
        return read_counted(answer);
    case ANSWER_CHUNK_SIZE:
    case ANSWER_CHUNK_END:
    case ANSWER_TRAILER:
        return read_line(answer);
    case ANSWER_TO_CLOSE:
        append_body(answer, answer->raw, answer->raw_bytes);
        drop_raw(answer, answer->raw_bytes);
        return false;
    case ANSWER_DONE:
    case ANSWER_BAD:
        return false;
    }
    return false;
}

void answer_feed(struct answer *answer, const char *bytes, size_t byte_count)
{
    if (byte_count == 0) {
        answer->state = answer->state == ANSWER_TO_CLOSE || answer->state == ANSWER_DONE ? ANSWER_DONE : ANSWER_BAD;
        return;
    }
    answer->raw = grow(answer->raw, &answer->raw_capacity, answer->raw_bytes + byte_count + 1);
    memcpy(answer->raw + answer->raw_bytes, bytes, byte_count);
    answer->raw_bytes += byte_count;
    answer->raw[answer->raw_bytes] = '\0';
    while (decode_step(answer)) {
    }
}

bool answer_is_over(const struct answer *answer)
{
    return answer->state == ANSWER_DONE || answer->state == ANSWER_BAD;
}

void answer_shut(struct answer *answer)
{
    free(answer->raw);
    free(answer->body);
    *answer = (struct answer){0};
}
