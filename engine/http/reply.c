/* reply: status line and headers of an answer, and the bodies of refusals. */
#include "engine/http/reply.h"

#include "engine/clock.h"
#include "engine/http/route.h"
#include "engine/json_out.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *reason_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {417, "Expectation Failed"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++) {
        if (phrases[i].status == status) {
            return phrases[i].phrase;
        }
    }
    assert(false); /* a status that err_table.h has and the list above lacks */
    return "";
}

static void add_text(struct outbox *outbox, const char *text)
{
    outbox_add(outbox, text, strlen(text));
}

static void add_number_field(struct outbox *outbox, const char *name, uint64_t value)
{
    char line[64];
    int length = snprintf(line, sizeof line, "%s: %llu\r\n", name, (unsigned long long)value);
    outbox_add(outbox, line, (size_t)length);
}

/* A list of header names comes back as it was sent only if it can be nothing else. */
static bool is_name_list(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        bool is_name_byte =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        if (!is_name_byte && c != ',' && c != ' ') {
            return false;
        }
    }
    return bytes > 0 && bytes <= REPLY_ASKED_BYTES_MAX;
}

static void add_preflight(struct outbox *outbox, const struct reply_head *head)
{
    add_text(outbox, "Access-Control-Allow-Methods: GET, POST, HEAD, OPTIONS\r\n"
                     "Access-Control-Max-Age: 600\r\n"
                     "Access-Control-Allow-Headers: ");
    if (is_name_list(head->asked_headers, head->asked_headers_bytes)) {
        outbox_add(outbox, head->asked_headers, head->asked_headers_bytes);
    } else {
        add_text(outbox, "authorization, content-type");
    }
    add_text(outbox, "\r\n");
}

size_t reply_date_text(int64_t unix_s, char *text)
{
    static const char days[] = "ThuFriSatSunMonTueWed"; /* 1970 began on a Thursday */
    static const char months[] = "MarAprMayJunJulAugSepOctNovDecJanFeb";

    /* Days since 0000-03-01, then years of the 400-year cycle that begin in March: leap days come last. */
    assert(unix_s >= 0);
    int64_t day = unix_s / 86400, second = unix_s % 86400;
    int64_t shifted = day + 719468, era = shifted / 146097, day_of_era = shifted % 146097;
    int64_t year = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    int length = snprintf(text, REPLY_DATE_BYTES, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + day % 7 * 3,
                          (int)(day_of_year - (153 * month + 2) / 5 + 1), months + month * 3,
                          (int)(year + era * 400 + (month >= 10 ? 1 : 0)), (int)(second / 3600),
                          (int)(second / 60 % 60), (int)(second % 60));
    assert(length == REPLY_DATE_BYTES - 1);
    return (size_t)length;
}

void reply_add_head(struct outbox *outbox, const struct reply_head *head)
{
    char line[64], date[REPLY_DATE_BYTES];

    assert(outbox_room(outbox) >= REPLY_HEAD_BYTES_MAX);
    int length = snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\n", head->status, reason_phrase(head->status));
    outbox_add(outbox, line, (size_t)length);
    (void)reply_date_text(clock_unix_seconds(), date);
    add_text(outbox, "Date: ");
    add_text(outbox, date);
    add_text(outbox, "\r\nServer: ashlar\r\nAccess-Control-Allow-Origin: *\r\n");
    if (head->content_type != NULL) {
        add_text(outbox, "Content-Type: ");
        add_text(outbox, head->content_type);
        add_text(outbox, "\r\n");
    }
    if (head->framing == REPLY_LENGTH) {
        add_number_field(outbox, "Content-Length", head->content_length);
    } else if (head->framing == REPLY_CHUNKED) {
        add_text(outbox, "Transfer-Encoding: chunked\r\n");
    }
    if (head->status == 200 && head->framing != REPLY_LENGTH) {
        add_text(outbox, "Cache-Control: no-cache\r\n");
    }
    if (head->is_retryable) {
        add_number_field(outbox, "Retry-After", REPLY_RETRY_AFTER_S);
    }
    if (head->status == 401) {
        add_text(outbox, "WWW-Authenticate: Bearer\r\n");
    }
    if (head->allowed_methods != 0) {
        char methods[ROUTE_METHODS_BYTES];
        (void)route_methods_text(head->allowed_methods, methods);
        add_text(outbox, "Allow: ");
        add_text(outbox, methods);
        add_text(outbox, "\r\n");
    }
    if (head->asked_headers != NULL) {
        add_preflight(outbox, head);
    }
    if (!head->is_keep_alive) {
        add_text(outbox, "Connection: close\r\n");
    } else if (head->is_http_1_0) {
        add_text(outbox, "Connection: keep-alive\r\n");
    }
    add_text(outbox, "\r\n");
}

static void add_members(struct json_out *json, enum err err, const char *param, const char *message)
{
    const struct err_row *row = err_row(err);

    json_out_key_text(json, "object", "error");
    json_out_key_text(json, "message", message);
    json_out_key_text(json, "type", row->type);
    json_out_key(json, "param");
    if (param[0] == '\0') {
        json_out_null(json);
    } else {
        json_out_text(json, param);
    }
    if (err == ERR_MODEL_NOT_FOUND) {
        json_out_key_text(json, "code", "model_not_found"); /* the one code that is a word in the contract */
    } else {
        json_out_key_i64(json, "code", row->status);
    }
}

size_t reply_error_json(enum err err, const char *param, const char *detail, char *out)
{
    char message[ERROR_DETAIL_BYTES_MAX + 128];
    struct json_out json;

    assert(err != ERR_OK && err != ERR_CLIENT_GONE);
    (void)snprintf(message, sizeof message, "%s%s%s", err_row(err)->text, detail[0] == '\0' ? "" : ": ", detail);
    json_out_open(&json, out, REPLY_ERROR_BYTES_MAX);
    json_out_object_begin(&json);
    add_members(&json, err, param, message);
    json_out_key(&json, "error");
    json_out_object_begin(&json);
    add_members(&json, err, param, message);
    json_out_object_end(&json);
    json_out_object_end(&json);
    assert(json_out_is_whole(&json));
    return json.length;
}
