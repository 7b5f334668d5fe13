/* client: a plain HTTP client for tests: sends bytes as they are, reads one answer after the other. */
#ifndef TESTS_HTTP_CLIENT_H
#define TESTS_HTTP_CLIENT_H

#include "tests/harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { CLIENT_BYTES_MAX = 4 * 1024 * 1024 };

struct client {
    int fd;
    size_t begin, end;
    char *bytes; /* [CLIENT_BYTES_MAX] */
};

struct answer {
    int status;
    size_t body_bytes;
    char *body; /* ends with NUL; chunks are joined */
    char head[4096];
};

static uint16_t client_port;

static inline struct client client_open(void)
{
    struct client client = {.fd = socket(AF_INET, SOCK_STREAM, 0)};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(client_port)};
    struct timeval patience = {.tv_sec = 8};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(client.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(client.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(client.fd, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(client.fd);
        client.fd = -1;
    }
    client.bytes = malloc(CLIENT_BYTES_MAX);
    return client;
}

static inline void client_close(struct client *client)
{
    (void)close(client->fd);
    free(client->bytes);
    client->fd = -1;
}

/* Leaves with a reset. */
static inline void client_reset(struct client *client)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    client_close(client);
}

static inline bool client_send(struct client *client, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(client->fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        count -= (size_t)sent;
    }
    return true;
}

static inline bool client_say(struct client *client, const char *text)
{
    return client_send(client, text, strlen(text));
}

/* More bytes; false at the end. */
static inline bool client_read(struct client *client)
{
    ssize_t got = recv(client->fd, client->bytes + client->end, CLIENT_BYTES_MAX - 1 - client->end, 0);
    client->end += got > 0 ? (size_t)got : 0;
    client->bytes[client->end] = '\0';
    return got > 0;
}

/* True if the server has closed and nothing is left. */
static inline bool client_is_closed(struct client *client)
{
    while (client_read(client)) {
    }
    return client->begin == client->end;
}

/* Reads until `text` has come; its end, or NULL. */
static inline char *client_until(struct client *client, const char *text)
{
    for (;;) {
        char *found = client->end > client->begin ? strstr(client->bytes + client->begin, text) : NULL;
        if (found != NULL) {
            return found + strlen(text);
        }
        if (!client_read(client)) {
            return NULL;
        }
    }
}

static inline const char *answer_field(const struct answer *answer, const char *name)
{
    static char value[512];
    size_t length = strlen(name);
    for (const char *line = strstr(answer->head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) == 0 && line[2 + length] == ':') {
            (void)snprintf(value, sizeof value, "%s", line + 2 + length + 2);
            value[strcspn(value, "\r")] = '\0';
            return value;
        }
    }
    return NULL;
}

static inline bool client_read_chunks(struct client *client, struct answer *answer)
{
    for (;;) {
        char *line_end = client_until(client, "\r\n");
        if (line_end == NULL) {
            return false;
        }
        size_t size = strtoul(client->bytes + client->begin, NULL, 16);
        client->begin = (size_t)(line_end - client->bytes);
        while (client->end - client->begin < size + 2) {
            if (!client_read(client)) {
                return false;
            }
        }
        memcpy(answer->body + answer->body_bytes, client->bytes + client->begin, size);
        answer->body_bytes += size;
        client->begin += size + 2;
        if (size == 0) {
            return true;
        }
    }
}

/* Reads one answer; status 0 if there is none. `has_body` false: to HEAD. Free the body with answer_free. */
static inline struct answer client_answer(struct client *client, bool has_body)
{
    struct answer answer = {.status = 0};
    answer.body = calloc(1, CLIENT_BYTES_MAX);
    char *end = client_until(client, "\r\n\r\n");
    if (end == NULL) {
        return answer;
    }
    size_t head_bytes = (size_t)(end - client->bytes) - client->begin;
    CU_ASSERT_FATAL(head_bytes < sizeof answer.head);
    memcpy(answer.head, client->bytes + client->begin, head_bytes);
    client->begin += head_bytes;
    int status = atoi(answer.head + 9);
    const char *length_text = answer_field(&answer, "content-length");
    size_t length = length_text != NULL ? strtoul(length_text, NULL, 10) : 0;
    const char *coding = answer_field(&answer, "transfer-encoding");
    bool is_chunked = coding != NULL;
    if (!has_body || status == 100 || status == 204) {
        answer.status = status;
    } else if (is_chunked) {
        answer.status = client_read_chunks(client, &answer) ? status : 0;
    } else if (length_text != NULL) {
        while (client->end - client->begin < length && client_read(client)) {
        }
        if (client->end - client->begin >= length) {
            memcpy(answer.body, client->bytes + client->begin, length);
            answer.body_bytes = length;
            client->begin += length;
            answer.status = status;
        }
    } else {
        while (client_read(client)) {
        }
        answer.body_bytes = client->end - client->begin;
        memcpy(answer.body, client->bytes + client->begin, answer.body_bytes);
        client->begin = client->end;
        answer.status = status;
    }
    if (client->begin == client->end) {
        client->begin = client->end = 0;
    }
    return answer;
}

static inline void answer_free(struct answer *answer)
{
    free(answer->body);
    answer->body = NULL;
}

/* One answer's status; its body is thrown away. */
static inline int client_status(struct client *client)
{
    struct answer answer = client_answer(client, true);
    answer_free(&answer);
    return answer.status;
}

#endif
