/* serve: a server of http/ with the engine double behind it, and the requests that tests send. Included once a program;
 * runs the cases with a balance check of every pool. */
#ifndef TESTS_HTTP_SERVE_H
#define TESTS_HTTP_SERVE_H

#include "engine/http/http_server.h"

#include "engine/log.h"
#include "engine/options.h"
#include "tests/http/client.h"
#include "tests/http/fake_engine.h"

#include <signal.h>

enum { CONNECTIONS = 24, LARGE_BYTES = 1024 * 1024 };

static struct http_server server;
static struct options options;
static pthread_t server_thread;
static _Atomic bool was_clean, is_over;

static inline void *serve(void *unused)
{
    (void)unused;
    was_clean = http_server_run(&server);
    is_over = true;
    return NULL;
}

static inline void start(void)
{
    /* clang-format off */
    static char *arguments[] = {
        "ashlar", "serve", "--model-path", "m", "--port", "0", "--header-timeout", "0.5", "--body-timeout", "0.5",
        "--body-wait", "0.5", "--write-timeout", "1", "--keep-alive", "0.8", "--large-body-bytes", "1048576",
        "--shutdown-grace", "0.5", "--enable-metrics", "--enable-cache-report", NULL,
    };
    /* clang-format on */
    struct options_error error;
    bool is_parsed =
        options_parse(&options, (int)(sizeof arguments / sizeof arguments[0]) - 1, arguments, NULL, &error);
    require(is_parsed);
    log_set_level(LOG_ERROR);
    http_server_bind(&server, &options);
    fake_open_pools(CONNECTIONS);
    fake_start();
    const struct http_facts facts = {
        .options = &options,
        .tokenizer = &fake.room.tokenizer,
        .model_name = "org/model",
        .tokenizer_path = "m",
        .model_type = "qwen2_5_vl",
        .architecture = "A",
        .context_tokens = FAKE_CONTEXT,
        .running_requests = 2,
        .queued_requests = 3,
        .has_pictures = true,
    };
    http_server_open(&server, &fake, &facts);
    pools_seal();
    client_port = http_server_port(&server);
    (void)pthread_create(&server_thread, NULL, serve, NULL);
    while (true) { /* until it listens */
        struct client client = client_open();
        bool is_open = client.fd >= 0;
        client_close(&client);
        if (is_open) {
            return;
        }
        (void)usleep(1000);
    }
}

static inline int all_home(void)
{
    for (int i = 0; i < 300; i++) {
        uint32_t used = 0;
        for (int pool = 0; pool < POOL_COUNT; pool++) {
            used += pools_used((enum pool)pool);
        }
        if (used == 0) {
            return 0;
        }
        (void)usleep(10000);
    }
    return 1;
}

/* --- requests --- */

static inline size_t write_post(char *out, size_t capacity, const char *body, const char *more)
{
    return (size_t)snprintf(out, capacity,
                            "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n%s"
                            "Content-Length: %zu\r\n\r\n%s",
                            more, strlen(body), body);
}

static inline bool post(struct client *client, const char *body)
{
    static char request[2 * LARGE_BYTES];
    return client_send(client, request, write_post(request, sizeof request, body, ""));
}

static inline const char *chat_body(const char *text, const char *fields)
{
    static char body[32768];
    (void)snprintf(body, sizeof body, "{\"model\":\"echo\",\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]%s}",
                   text, fields);
    return body;
}

/* GET on a connection of its own; the status. */
static inline int get_status(const char *path)
{
    struct client client = client_open();
    char request[256];
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: t\r\n\r\n", path);
    (void)client_say(&client, request);
    int status = client_status(&client);
    client_close(&client);
    return status;
}

/* The value of `"content":"..."` pieces, joined, still escaped. */
static inline void join_content(const char *body, char *out)
{
    static const char key[] = "\"content\":\"";
    size_t length = 0;
    for (const char *at = strstr(body, key); at != NULL; at = strstr(at, key)) {
        for (at += sizeof key - 1; *at != '"'; at++) {
            out[length++] = *at;
            if (*at == '\\') {
                out[length++] = *++at;
            }
        }
    }
    out[length] = '\0';
}

static inline bool has(const struct answer *answer, const char *text)
{
    return strstr(answer->body, text) != NULL;
}

/* Runs the cases against a server of their own. */
static inline int serve_cases(int argc, char **argv, const char *suite, const struct harness_case *cases)
{
    start();
    int status = harness_run(argc, argv, suite, cases, all_home);
    if (!is_over) {
        (void)kill(getpid(), SIGTERM);
        (void)pthread_join(server_thread, NULL);
    }
    fake_stop();
    return status;
}

#endif
