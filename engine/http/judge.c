/* judge: what becomes of a request whose head is complete, before a byte of its body is read. */
#include "engine/http/judge.h"

#include "engine/http/http_server.h"

#include <assert.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool judge_is_key(const char *value, size_t value_bytes, const char *key)
{
    static const char scheme[] = "Bearer ";
    size_t scheme_bytes = sizeof scheme - 1;
    size_t key_bytes = strlen(key);

    if (value_bytes <= scheme_bytes || strncasecmp(value, scheme, scheme_bytes) != 0) {
        return false;
    }
    while (scheme_bytes < value_bytes && value[scheme_bytes] == ' ') {
        scheme_bytes++;
    }
    return value_bytes - scheme_bytes == key_bytes && memeql_sec(value + scheme_bytes, key, key_bytes) != 0;
}

bool judge_is_json(const char *value, size_t value_bytes)
{
    static const char type[] = "application/json";
    size_t type_bytes = sizeof type - 1;

    if (value_bytes < type_bytes || strncasecmp(value, type, type_bytes) != 0) {
        return false;
    }
    return value_bytes == type_bytes || value[type_bytes] == ';' || value[type_bytes] == ' ' ||
           value[type_bytes] == '\t';
}

/* The refusals that need nothing but the head; detail gets the numbers of a 413. */
static enum err judge_head(const struct http_server *server, struct conn *conn, char *detail, size_t detail_bytes)
{
    const struct head *head = &conn->head;
    const char *path = conn->in + head->path.at;
    const char *key = server->facts.options->api_key;
    uint64_t limit = pools_element_bytes(POOL_BODY_LARGE);

    if (head->has_unknown_expectation) {
        return ERR_EXPECTATION_FAILED;
    }
    enum err err = route_find(head->method, path, head->path.length, &conn->route);
    if (err != ERR_OK || head->method == METHOD_OPTIONS) { /* a preflight never carries a key */
        bool is_asterisk = head->path.length == 1 && path[0] == '*';
        return is_asterisk ? ERR_OK : err;
    }
    const struct route_row *row = route_row(conn->route);
    if (conn->route == ROUTE_METRICS && !server->facts.options->enable_metrics) {
        return ERR_NOT_FOUND;
    }
    if (row->needs_key && key != NULL &&
        !judge_is_key(conn->in + head->authorization.at, head->authorization.length, key)) {
        return ERR_UNAUTHORIZED;
    }
    if (!row->has_body) {
        return ERR_OK;
    }
    if (!judge_is_json(conn->in + head->content_type.at, head->content_type.length)) {
        return ERR_BAD_CONTENT_TYPE;
    }
    if (head->has_length && head->content_length > limit) {
        (void)snprintf(detail, detail_bytes, "%llu bytes, at most %llu are taken (--large-body-bytes)",
                       (unsigned long long)head->content_length, (unsigned long long)limit);
        return ERR_BODY_TOO_LARGE;
    }
    return http_server_is_open(server) ? ERR_OK : ERR_SHUTTING_DOWN;
}

void judge_request(struct http_server *server, struct conn *conn)
{
    const struct head *head = &conn->head;
    bool has_body = head->is_chunked || head->content_length > 0;
    char detail[128] = "";
    struct exchange *exchange = NULL;

    assert(head->state == HEAD_DONE && conn->exchange == NULL);
    conn->route = ROUTE_COUNT;
    conn->is_closing = !head->is_keep_alive || !http_server_is_open(server);
    memset(&conn->reply, 0, sizeof conn->reply);

    enum err err = judge_head(server, conn, detail, sizeof detail);
    bool takes_body = err == ERR_OK && head->method == METHOD_POST && route_row(conn->route)->has_body;
    if (takes_body) {
        err = exchange_open(&server->book, conn, head->is_chunked ? 0 : head->content_length, &exchange);
    }
    if (err != ERR_OK) {
        conn_refuse(server, conn, err, "", detail, has_body);
        return;
    }
    if (takes_body) {
        conn_begin_body(conn, exchange);
        return;
    }
    conn->is_closing = conn->is_closing || has_body; /* nobody reads it */
    if (head->method == METHOD_OPTIONS) {
        conn->reply.is_empty = true;
        conn_reply(server, conn);
        return;
    }
    api_reply_open(server, conn->route, conn->in + head->path.at, head->path.length, &conn->reply);
    if (conn->reply.err != ERR_OK) {
        conn_refuse(server, conn, conn->reply.err, conn->reply.param, conn->reply.detail, has_body);
    } else if (conn->reply.waits_for_health) {
        conn_wait_for_health(server, conn);
    } else {
        conn_reply(server, conn);
    }
}
