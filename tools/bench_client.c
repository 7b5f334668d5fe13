/* bench_client: sends requests over sockets of their own, many at once, and times what comes back.
 *
 * Always true: one thread, poll; a request's clock starts before its connect and stops at the last byte of its answer.
 */
#include "tools/bench_client.h"

#include "engine/json.h"
#include "tools/bench_answer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_BYTES = 65536,
    JSON_PATH_DEPTH = 8,
    JSON_PATH_BYTES = 32,
    OPEN_MAX_AT_ONCE = 1024,
    ANSWER_MS_MAX = 3600000
};

struct exchange {
    int fd;
    struct load_request request;
    size_t sent_bytes;
    struct answer answer;
    size_t parsed_bytes; /* of the answer's body, whole lines only */
    double started_ms, last_token_ms;
    size_t gap_capacity;
    bool is_ended; /* [DONE] came */
    struct outcome *outcome;
};

double client_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- what an event says ---- */

struct event_facts {
    bool has_text;
    int64_t prompt_tokens, completion_tokens;
    char error[200];
};

/* A dotted path without array indices: "choices.delta.content". */
struct json_path {
    char keys[JSON_PATH_DEPTH][JSON_PATH_BYTES];
    int depth;
};

static void note_value(const struct json_path *path, const struct json_event *event, struct event_facts *facts)
{
    char name[JSON_PATH_DEPTH * JSON_PATH_BYTES] = "";
    size_t length = 0;

    for (int i = 0; i < path->depth && i < JSON_PATH_DEPTH; i++) {
        if (path->keys[i][0] != '\0') {
            length +=
                (size_t)snprintf(name + length, sizeof name - length, "%s%s", length > 0 ? "." : "", path->keys[i]);
        }
    }
    bool is_text = strcmp(name, "choices.delta.content") == 0 || strcmp(name, "choices.message.content") == 0 ||
                   strcmp(name, "choices.delta.reasoning_content") == 0;
    if (is_text && event->kind == JSON_STRING && event->bytes > 0) {
        facts->has_text = true;
    } else if (strcmp(name, "usage.prompt_tokens") == 0) {
        (void)json_number_i64(event->text, event->bytes, &facts->prompt_tokens);
    } else if (strcmp(name, "usage.completion_tokens") == 0) {
        (void)json_number_i64(event->text, event->bytes, &facts->completion_tokens);
    } else if (strcmp(name, "error.message") == 0 && event->kind == JSON_STRING) {
        snprintf(facts->error, sizeof facts->error, "%.*s", (int)event->bytes, event->text);
    }
}

/* False if the text is not JSON. */
static bool read_facts(char *text, size_t bytes, struct event_facts *facts)
{
    struct json_reader reader;
    struct json_event event;
    struct json_path path = {.depth = 0};

    *facts = (struct event_facts){.prompt_tokens = -1, .completion_tokens = -1};
    json_open(&reader, text, bytes);
    for (;;) {
        if (json_next(&reader, &event) != ERR_OK) {
            return false;
        }
        if (event.kind == JSON_END) {
            return true;
        }
        if (event.kind == JSON_OBJECT_BEGIN || event.kind == JSON_ARRAY_BEGIN) {
            if (path.depth < JSON_PATH_DEPTH) {
                path.keys[path.depth][0] = '\0';
            }
            path.depth++;
        } else if (event.kind == JSON_OBJECT_END || event.kind == JSON_ARRAY_END) {
            path.depth--;
        } else if (event.kind == JSON_KEY && path.depth <= JSON_PATH_DEPTH) {
            snprintf(path.keys[path.depth - 1], JSON_PATH_BYTES, "%.*s", (int)event.bytes, event.text);
        } else {
            note_value(&path, &event, facts);
        }
    }
}

static void fail(struct exchange *exchange, const char *reason, const char *detail)
{
    if (exchange->outcome->error[0] == '\0') {
        snprintf(exchange->outcome->error, sizeof exchange->outcome->error, "%s%.200s", reason, detail);
    }
}

static void note_token(struct exchange *exchange, double now_ms)
{
    struct outcome *outcome = exchange->outcome;

    if (outcome->event_count++ == 0) {
        outcome->first_token_ms = now_ms - exchange->started_ms;
    } else {
        outcome->gaps_ms = grow(outcome->gaps_ms, &exchange->gap_capacity,
                                (size_t)(outcome->gap_count + 1) * sizeof *outcome->gaps_ms);
        outcome->gaps_ms[outcome->gap_count++] = now_ms - exchange->last_token_ms;
    }
    exchange->last_token_ms = now_ms;
}

static void note_document(struct exchange *exchange, char *text, size_t bytes, double now_ms)
{
    struct event_facts facts;

    if (!read_facts(text, bytes, &facts)) {
        fail(exchange, "not JSON: ", text);
        return;
    }
    if (facts.has_text) {
        note_token(exchange, now_ms);
    }
    if (facts.prompt_tokens >= 0) {
        exchange->outcome->prompt_tokens = facts.prompt_tokens;
    }
    if (facts.completion_tokens >= 0) {
        exchange->outcome->output_tokens = facts.completion_tokens;
    }
    if (facts.error[0] != '\0') {
        fail(exchange, "", facts.error);
    }
}

/* Every whole line of the stream that is not parsed yet. */
static void read_events(struct exchange *exchange, double now_ms)
{
    struct answer *answer = &exchange->answer;

    while (exchange->parsed_bytes < answer->body_bytes) {
        char *line = answer->body + exchange->parsed_bytes;
        char *end = memchr(line, '\n', answer->body_bytes - exchange->parsed_bytes);
        if (end == NULL) {
            return;
        }
        exchange->parsed_bytes += (size_t)(end + 1 - line);
        if (end == line) {
            continue;
        }
        *end = '\0';
        if (strncmp(line, "data: ", 6) != 0) {
            fail(exchange, "not an event: ", line);
        } else if (strcmp(line + 6, "[DONE]") == 0) {
            exchange->is_ended = true;
        } else {
            note_document(exchange, line + 6, (size_t)(end - line - 6), now_ms);
        }
    }
}

/* ---- sockets ---- */

static int connect_to(const struct endpoint *endpoint, bool is_blocking)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)endpoint->port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || inet_pton(AF_INET, endpoint->host, &address.sin_addr) != 1) {
        fprintf(stderr, "ashlar-bench: '%s' is no numeric IPv4 address\n", endpoint->host);
        exit(2);
    }
    if (!is_blocking) {
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static void begin(struct exchange *exchange, const struct load *load, const struct run_plan *plan, int number)
{
    char host[80];

    snprintf(host, sizeof host, "%s:%d", plan->endpoint.host, plan->endpoint.port);
    exchange->request = load_request(load, plan->first_number + (uint64_t)number, host, plan->authorization);
    exchange->outcome->text_tokens = exchange->request.text_tokens;
    exchange->outcome->output_tokens = exchange->request.output_tokens;
    exchange->outcome->prompt_tokens = -1;
    exchange->started_ms = client_now_ms();
    exchange->fd = connect_to(&plan->endpoint, false);
    if (exchange->fd < 0) {
        fail(exchange, "connect: ", strerror(errno));
    }
}

static void finish(struct exchange *exchange, bool is_stream, double now_ms)
{
    struct outcome *outcome = exchange->outcome;
    struct answer *answer = &exchange->answer;
    char status[32];

    if (answer->status != 200) {
        if (answer->body != NULL) {
            note_document(exchange, answer->body, answer->body_bytes, now_ms);
        }
        snprintf(status, sizeof status, "status %d", answer->status);
        fail(exchange, status, "");
    } else if (!is_stream && answer->state == ANSWER_DONE) {
        note_document(exchange, answer->body, answer->body_bytes, now_ms);
    } else if (!exchange->is_ended) {
        fail(exchange, "the answer ended early", "");
    }
    outcome->latency_ms = now_ms - exchange->started_ms;
    outcome->is_success = outcome->error[0] == '\0';
    close(exchange->fd);
    exchange->fd = -1;
    free(exchange->request.bytes);
    answer_shut(answer);
}

static void send_more(struct exchange *exchange)
{
    const struct load_request *request = &exchange->request;
    ssize_t sent = send(exchange->fd, request->bytes + exchange->sent_bytes, request->byte_count - exchange->sent_bytes,
                        MSG_NOSIGNAL);
    if (sent > 0) {
        exchange->sent_bytes += (size_t)sent;
    } else if (errno != EAGAIN && errno != EINTR) {
        exchange->sent_bytes = request->byte_count; /* refused early: the answer tells why */
    }
}

/* True when the exchange is over. */
static bool receive_more(struct exchange *exchange, bool is_stream)
{
    static char bytes[READ_BYTES];
    ssize_t got = recv(exchange->fd, bytes, sizeof bytes, 0);
    double now_ms = client_now_ms();

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got < 0) {
        fail(exchange, "receive: ", strerror(errno));
        answer_feed(&exchange->answer, NULL, 0);
    } else {
        answer_feed(&exchange->answer, bytes, (size_t)got);
    }
    if (is_stream && exchange->answer.status == 200) {
        read_events(exchange, now_ms);
    }
    return answer_is_over(&exchange->answer);
}

/* ---- the run ---- */

struct run {
    struct exchange *exchanges;
    int started, ended, open;
    double next_start_ms;
    uint64_t random;
};

static void start_due(struct run *run, const struct load *load, const struct run_plan *plan)
{
    int limit = plan->concurrency > 0 && plan->concurrency < OPEN_MAX_AT_ONCE ? plan->concurrency : OPEN_MAX_AT_ONCE;

    while (run->started < plan->request_count && run->open < limit && client_now_ms() >= run->next_start_ms) {
        struct exchange *exchange = &run->exchanges[run->started];
        begin(exchange, load, plan, run->started++);
        run->open += exchange->fd >= 0;
        run->ended += exchange->fd < 0;
        if (plan->request_rate > 0) {
            double uniform = ((double)(load_random(&run->random) >> 11) + 1) / 9007199254740993.0;
            run->next_start_ms += -log(uniform) / plan->request_rate * 1e3;
        }
    }
}

static int wait_ms(const struct run *run, const struct run_plan *plan)
{
    double left = run->next_start_ms - client_now_ms();

    if (run->started == plan->request_count || left <= 0) {
        return 1000;
    }
    return left < 1000 ? (int)left + 1 : 1000;
}

static void serve_open(struct run *run, const struct load *load, const struct run_plan *plan)
{
    static struct pollfd polled[OPEN_MAX_AT_ONCE];
    static struct exchange *owners[OPEN_MAX_AT_ONCE];
    nfds_t count = 0;

    for (int i = 0; i < run->started; i++) {
        struct exchange *exchange = &run->exchanges[i];
        if (exchange->fd >= 0) {
            bool is_sent = exchange->sent_bytes == exchange->request.byte_count;
            polled[count].fd = exchange->fd;
            polled[count].events = (short)(POLLIN | (is_sent ? 0 : POLLOUT));
            owners[count++] = exchange;
        }
    }
    (void)poll(polled, count, wait_ms(run, plan));
    for (nfds_t i = 0; i < count; i++) {
        bool is_over = client_now_ms() - owners[i]->started_ms > ANSWER_MS_MAX;
        if ((polled[i].revents & POLLOUT) != 0) {
            send_more(owners[i]);
        }
        if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
            is_over = receive_more(owners[i], load->is_stream) || is_over;
        }
        if (is_over) {
            finish(owners[i], load->is_stream, client_now_ms());
            run->open--;
            run->ended++;
        }
    }
}

double client_run(const struct load *load, const struct run_plan *plan, struct outcome *outcomes)
{
    struct run run = {.random = load->seed + plan->first_number, .next_start_ms = client_now_ms()};
    double started_ms = run.next_start_ms;

    run.exchanges = calloc((size_t)plan->request_count + 1, sizeof *run.exchanges);
    if (run.exchanges == NULL) {
        exit(2);
    }
    for (int i = 0; i < plan->request_count; i++) {
        run.exchanges[i].fd = -1;
        run.exchanges[i].outcome = &outcomes[i];
    }
    while (run.ended < plan->request_count) {
        start_due(&run, load, plan);
        serve_open(&run, load, plan);
    }
    free(run.exchanges);
    return client_now_ms() - started_ms;
}

char *client_get(const struct endpoint *endpoint, const char *authorization, const char *path)
{
    struct answer answer = {0};
    char bytes[READ_BYTES], head[1024];
    int fd = connect_to(endpoint, true), length = 0;

    if (fd < 0) {
        return NULL;
    }
    length = snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n%s\r\n", path,
                      endpoint->host, endpoint->port, authorization);
    if (send(fd, head, (size_t)length, MSG_NOSIGNAL) == length) {
        while (!answer_is_over(&answer)) {
            ssize_t got = recv(fd, bytes, sizeof bytes, 0);
            answer_feed(&answer, bytes, got > 0 ? (size_t)got : 0);
        }
    }
    close(fd);
    char *body = answer.status == 200 && answer.state == ANSWER_DONE ? answer.body : NULL;
    if (body != NULL) {
        answer.body = NULL;
    }
    answer_shut(&answer);
    return body;
}
