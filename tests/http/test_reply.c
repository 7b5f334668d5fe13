/* test_reply: every refusal of err_table.h can be written, whatever bytes the client sent; heads say what they must. */
#include "engine/http/reply.h"
#include "engine/http/route.h"
#include "engine/json.h"
#include "tests/harness.h"

#include <string.h>
#include <time.h>

static struct outbox outbox;
static char json[REPLY_ERROR_BYTES_MAX];

static bool is_json(const char *bytes, size_t length)
{
    struct json_reader reader;
    struct json_event event;

    json_open_raw(&reader, bytes, length);
    enum err err = json_skip(&reader);
    return err == ERR_OK && json_next(&reader, &event) == ERR_OK && event.kind == JSON_END;
}

static void every_refusal_has_a_head_and_both_forms(void)
{
    for (int i = ERR_OK + 1; i < ERR_COUNT; i++) {
        const struct err_row *row = err_row((enum err)i);
        if (i == ERR_CLIENT_GONE) {
            continue;
        }
        size_t length = reply_error_json((enum err)i, "field", "detail", json);
        CU_ASSERT(is_json(json, length));
        json[length] = '\0';
        CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"error\":{\"object\":\"error\",\"message\":\""));
        CU_ASSERT_PTR_NOT_NULL(strstr(json, "\"param\":\"field\""));
        outbox_open(&outbox);
        reply_add_head(&outbox, &(struct reply_head){.status = row->status,
                                                     .is_retryable = row->is_retryable,
                                                     .framing = REPLY_LENGTH,
                                                     .content_length = length});
        outbox.bytes[outbox.end] = '\0';
        CU_ASSERT((strstr(outbox.bytes, "\r\nRetry-After: ") != NULL) == row->is_retryable);
        CU_ASSERT_PTR_NOT_NULL(strstr(outbox.bytes, "\r\nConnection: close\r\n\r\n"));
    }
}

static void the_longest_and_worst_details_fit(void)
{
    char param[64], detail[ERROR_DETAIL_BYTES_MAX];
    static const unsigned char fills[] = {1, '"', 0xff, 0xc3, 'x'};

    for (size_t i = 0; i < sizeof fills; i++) {
        memset(param, fills[i], sizeof param);
        memset(detail, fills[i], sizeof detail);
        param[sizeof param - 1] = detail[sizeof detail - 1] = '\0';
        for (int err = ERR_OK + 1; err < ERR_CLIENT_GONE; err++) {
            CU_ASSERT(is_json(json, reply_error_json((enum err)err, param, detail, json)));
        }
    }
}

static void a_head_is_exactly_this(void)
{
    const struct reply_head head = {.status = 200,
                                    .content_type = "application/json",
                                    .framing = REPLY_LENGTH,
                                    .content_length = 12345678901u,
                                    .is_keep_alive = true};
    outbox_open(&outbox);
    reply_add_head(&outbox, &head);
    outbox.bytes[outbox.end] = '\0';
    char *date = strstr(outbox.bytes, "Date: ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(date);
    memmove(date, date + 6 + REPLY_DATE_BYTES - 1 + 2, strlen(date + 6 + REPLY_DATE_BYTES - 1 + 2) + 1);
    CU_ASSERT_STRING_EQUAL(outbox.bytes, "HTTP/1.1 200 OK\r\nServer: ashlar\r\nAccess-Control-Allow-Origin: *\r\n"
                                         "Content-Type: application/json\r\nContent-Length: 12345678901\r\n\r\n");
}

static void dates_are_those_of_the_calendar(void)
{
    char text[REPLY_DATE_BYTES];

    for (int64_t day = 0; day < 200000; day++) { /* beyond 2500, every leap rule included */
        time_t seconds = (time_t)(day * 86400 + day % 86400);
        struct tm tm;
        char expected[REPLY_DATE_BYTES];
        (void)strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&seconds, &tm));
        CU_ASSERT_FATAL(reply_date_text(seconds, text) == REPLY_DATE_BYTES - 1);
        CU_ASSERT_FATAL(strcmp(text, expected) == 0);
    }
}

static void asked_headers_come_back_only_if_they_are_names(void)
{
    static const struct {
        const char *asked, *echoed;
    } rows[] = {{"authorization, x-a", "authorization, x-a\r\n"},
                {"a\r\nX: y", "authorization, content-type\r\n"},
                {"", "authorization, content-type\r\n"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        outbox_open(&outbox);
        reply_add_head(&outbox, &(struct reply_head){.status = 204,
                                                     .framing = REPLY_NO_BODY,
                                                     .asked_headers = rows[i].asked,
                                                     .asked_headers_bytes = strlen(rows[i].asked)});
        outbox.bytes[outbox.end] = '\0';
        const char *field = strstr(outbox.bytes, "Access-Control-Allow-Headers: ");
        CU_ASSERT_PTR_NOT_NULL_FATAL(field);
        CU_ASSERT(strncmp(field + 30, rows[i].echoed, strlen(rows[i].echoed)) == 0);
        CU_ASSERT_PTR_NULL(strstr(outbox.bytes, "Content-Length"));
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_refusal_has_a_head_and_both_forms),
        CASE(the_longest_and_worst_details_fit),
        CASE(a_head_is_exactly_this),
        CASE(dates_are_those_of_the_calendar),
        CASE(asked_headers_come_back_only_if_they_are_names),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "http/reply", cases, NULL);
}
