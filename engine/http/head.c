/* head: a strict parser of HTTP/1.1 and 1.0 request heads, one byte at a time if need be.
 *
 * Always true between calls: every byte before `at` was looked at once and is allowed where it stands; every line
 * before `line_at` is taken. So a head costs time linear in its bytes however they arrive, and what two servers could
 * read in two ways (bare LF, folded lines, blanks before a colon, two lengths, a length beside a coding) never gets
 * through.
 */
#include "engine/http/head.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum { EMPTY_LINES_MAX = 4 }; /* CRLFs before a request line: old clients send one behind a body */

void head_open(struct head *head)
{
    memset(head, 0, sizeof *head);
    head->state = HEAD_MORE;
}

bool head_is_begun(const struct head *head)
{
    return head->at > head->line_at || head->has_request_line;
}

bool head_is_token_byte(unsigned char byte)
{
    if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9')) {
        return true;
    }
    return byte != 0 && strchr("!#$%&'*+-.^_`|~", byte) != NULL;
}

static int hex_value(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

static bool is_text(const char *bytes, size_t length, const char *text)
{
    return strlen(text) == length && strncasecmp(bytes, text, length) == 0;
}

static enum err take_method(struct head *head, const char *name, size_t length)
{
    static const struct {
        const char *name;
        enum head_method method;
    } methods[] = {{"GET", METHOD_GET}, {"HEAD", METHOD_HEAD}, {"POST", METHOD_POST}, {"OPTIONS", METHOD_OPTIONS}};

    for (size_t i = 0; i < length; i++) {
        if (!head_is_token_byte((unsigned char)name[i])) {
            return ERR_BAD_HTTP;
        }
    }
    head->method = METHOD_OTHER;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (strlen(methods[i].name) == length && memcmp(methods[i].name, name, length) == 0) {
            head->method = methods[i].method;
        }
    }
    return length == 0 ? ERR_BAD_HTTP : ERR_OK;
}

/* Decodes %XX over itself. A control character or a broken escape is nobody's file name: refused. */
static enum err decode_path(char *path, size_t *length)
{
    size_t out = 0;

    for (size_t i = 0; i < *length; i++) {
        char byte = path[i];
        if (byte == '%') {
            int high = i + 1 < *length ? hex_value(path[i + 1]) : -1;
            int low = i + 2 < *length ? hex_value(path[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return ERR_BAD_HTTP;
            }
            byte = (char)(high * 16 + low);
            i += 2;
        }
        if ((unsigned char)byte < 0x20 || byte == 0x7f) {
            return ERR_BAD_HTTP;
        }
        path[out++] = byte;
    }
    assert(out <= *length);
    *length = out;
    return ERR_OK;
}

/* origin-form, absolute-form (what proxies send) or the asterisk of OPTIONS; never authority-form. */
static enum err take_target(struct head *head, char *bytes, size_t at, size_t length)
{
    char *target = bytes + at;

    for (size_t i = 0; i < length; i++) {
        if (target[i] < 0x21 || target[i] > 0x7e || target[i] == '#') {
            return ERR_BAD_HTTP;
        }
    }
    if (length == 1 && target[0] == '*' && head->method == METHOD_OPTIONS) {
        head->path = (struct head_span){(uint16_t)at, 1};
        return ERR_OK;
    }
    size_t skip = 0;
    if (length > 7 && strncasecmp(target, "http://", 7) == 0) {
        skip = 7;
    } else if (length > 8 && strncasecmp(target, "https://", 8) == 0) {
        skip = 8;
    }
    if (skip > 0) {
        size_t authority_at = skip;
        while (skip < length && target[skip] != '/' && target[skip] != '?') {
            skip++;
        }
        if (skip == authority_at) {
            return ERR_BAD_HTTP;
        }
        if (skip == length ||
            target[skip] == '?') { /* an empty path is "/": the last byte of the authority gives its place */
            target[--skip] = '/';
        }
    }
    if (skip >= length || target[skip] != '/') {
        return ERR_BAD_HTTP;
    }
    const char *mark = memchr(target + skip, '?', length - skip);
    size_t path_bytes = mark == NULL ? length - skip : (size_t)(mark - target) - skip;
    if (mark != NULL) {
        size_t query_at = (size_t)(mark - target) + 1;
        head->query = (struct head_span){(uint16_t)(at + query_at), (uint16_t)(length - query_at)};
    }
    enum err err = decode_path(target + skip, &path_bytes);
    head->path = (struct head_span){(uint16_t)(at + skip), (uint16_t)path_bytes};
    return err;
}

static enum err take_version(struct head *head, const char *text, size_t length)
{
    bool is_form = length == 8 && memcmp(text, "HTTP/", 5) == 0 && text[5] >= '0' && text[5] <= '9' && text[6] == '.' &&
                   text[7] >= '0' && text[7] <= '9';
    if (!is_form) {
        return ERR_BAD_HTTP;
    }
    if (text[5] != '1') {
        return ERR_HTTP_VERSION;
    }
    head->is_http_1_0 = text[7] == '0'; /* a later minor version is answered as 1.1 */
    return ERR_OK;
}

static enum err take_request_line(struct head *head, char *bytes, size_t length)
{
    char *line = bytes + head->line_at;
    const char *first = memchr(line, ' ', length);
    if (first == NULL) {
        return ERR_BAD_HTTP;
    }
    size_t target_at = (size_t)(first - line) + 1;
    const char *second = memchr(line + target_at, ' ', length - target_at);
    if (second == NULL) {
        return ERR_BAD_HTTP;
    }
    size_t version_at = (size_t)(second - line) + 1;

    enum err err = take_version(head, line + version_at, length - version_at);
    if (err == ERR_OK) {
        err = take_method(head, line, target_at - 1);
    }
    if (err == ERR_OK) {
        err = take_target(head, bytes, head->line_at + target_at, version_at - 1 - target_at);
    }
    return err;
}

static enum err take_length(struct head *head, const char *value, size_t length)
{
    uint64_t number = 0;

    if (length == 0 || head->has_length) {
        return ERR_BAD_HTTP;
    }
    for (size_t i = 0; i < length; i++) {
        if (value[i] < '0' || value[i] > '9' || __builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(value[i] - '0'), &number)) {
            return ERR_BAD_HTTP;
        }
    }
    head->has_length = true;
    head->content_length = number;
    return number > INT64_MAX ? ERR_BAD_HTTP : ERR_OK;
}

/* Connection: a list of tokens, of which two matter. */
static void take_connection(struct head *head, const char *value, size_t length)
{
    for (size_t i = 0; i < length;) {
        while (i < length && (value[i] == ' ' || value[i] == '\t' || value[i] == ',')) {
            i++;
        }
        size_t begin = i;
        while (i < length && value[i] != ' ' && value[i] != '\t' && value[i] != ',') {
            i++;
        }
        head->says_close = head->says_close || is_text(value + begin, i - begin, "close");
        head->says_keep_alive = head->says_keep_alive || is_text(value + begin, i - begin, "keep-alive");
    }
}

/* The span of a field that may come once only. */
static enum err take_once(struct head_span *span, bool is_fatal, size_t at, size_t length)
{
    if (span->length > 0 && is_fatal) {
        return ERR_BAD_HTTP;
    }
    *span = (struct head_span){(uint16_t)at, (uint16_t)length};
    return ERR_OK;
}

static enum err take_known_field(struct head *head, const char *bytes, size_t name_at, size_t name_bytes, size_t at,
                                 size_t length)
{
    const char *name = bytes + name_at;
    const char *value = bytes + at;

    if (is_text(name, name_bytes, "content-length")) {
        return take_length(head, value, length);
    }
    if (is_text(name, name_bytes, "transfer-encoding")) {
        if (head->is_chunked) {
            return ERR_BAD_HTTP;
        }
        head->is_chunked = true;
        return is_text(value, length, "chunked") ? ERR_OK : ERR_NOT_IMPLEMENTED;
    }
    if (is_text(name, name_bytes, "host")) {
        bool is_second = head->has_host;
        head->has_host = true;
        return is_second ? ERR_BAD_HTTP : ERR_OK;
    }
    if (is_text(name, name_bytes, "connection")) {
        take_connection(head, value, length);
    } else if (is_text(name, name_bytes, "expect")) {
        head->has_unknown_expectation = head->has_unknown_expectation || !is_text(value, length, "100-continue");
        head->has_expect = true;
    } else if (is_text(name, name_bytes, "authorization")) {
        return take_once(&head->authorization, true, at, length);
    } else if (is_text(name, name_bytes, "content-type")) {
        return take_once(&head->content_type, true, at, length);
    } else if (is_text(name, name_bytes, "access-control-request-headers")) {
        return take_once(&head->asked_headers, false, at, length);
    }
    return ERR_OK;
}

static enum err take_field(struct head *head, const char *bytes, size_t length)
{
    size_t line_at = head->line_at;
    size_t colon = 0;

    if (++head->field_count > HEAD_FIELDS_MAX) {
        return ERR_HEAD_TOO_LARGE;
    }
    while (colon < length && head_is_token_byte((unsigned char)bytes[line_at + colon])) {
        colon++;
    }
    if (colon == 0 || colon == length ||
        bytes[line_at + colon] != ':') { /* folded line, blank before the colon, no name */
        return ERR_BAD_HTTP;
    }
    size_t begin = line_at + colon + 1;
    size_t end = line_at + length;
    while (begin < end && (bytes[begin] == ' ' || bytes[begin] == '\t')) {
        begin++;
    }
    while (end > begin && (bytes[end - 1] == ' ' || bytes[end - 1] == '\t')) {
        end--;
    }
    return take_known_field(head, bytes, line_at, colon, begin, end - begin);
}

/* What only the whole head can tell. */
static enum err finish(struct head *head)
{
    if (!head->is_http_1_0 && !head->has_host) {
        return ERR_BAD_HTTP;
    }
    if (head->is_chunked && (head->has_length || head->is_http_1_0)) {
        return ERR_BAD_HTTP;
    }
    head->is_keep_alive = !head->says_close && (!head->is_http_1_0 || head->says_keep_alive);
    head->wants_continue = head->has_expect && !head->has_unknown_expectation && !head->is_http_1_0;
    return ERR_OK;
}

/* Takes the line that ends before the CRLF at `at`. Sets the state when it was the last one. */
static enum err take_line(struct head *head, char *bytes)
{
    size_t length = (size_t)(head->at - head->line_at) - 1; /* without CR; LF is not counted yet */

    if (length == 0) {
        if (!head->has_request_line) {
            return ++head->empty_count > EMPTY_LINES_MAX ? ERR_BAD_HTTP : ERR_OK;
        }
        enum err err = finish(head);
        head->state = err == ERR_OK ? HEAD_DONE : HEAD_BAD;
        return err;
    }
    if (!head->has_request_line) {
        head->has_request_line = true;
        return take_request_line(head, bytes, length);
    }
    return take_field(head, bytes, length);
}

static enum err take_byte(struct head *head, char *bytes)
{
    unsigned char byte = (unsigned char)bytes[head->at];

    if (head->has_cr) {
        if (byte != '\n') {
            return ERR_BAD_HTTP;
        }
        enum err err = take_line(head, bytes);
        head->has_cr = false;
        head->at++;
        head->line_at = head->at;
        return err;
    }
    if (byte == '\r') {
        head->has_cr = true;
    } else if ((byte < 0x20 && byte != '\t') || byte == 0x7f) { /* a bare LF too */
        return ERR_BAD_HTTP;
    }
    head->at++;
    return ERR_OK;
}

enum head_state head_parse(struct head *head, char *bytes, size_t length)
{
    assert(head->at <= HEAD_BYTES_MAX);
    size_t end = length < HEAD_BYTES_MAX ? length : HEAD_BYTES_MAX;

    while (head->state == HEAD_MORE && head->at < end) {
        head->err = take_byte(head, bytes);
        if (head->err != ERR_OK) {
            head->state = HEAD_BAD;
        }
    }
    if (head->state == HEAD_MORE && head->at == HEAD_BYTES_MAX) {
        head->err = ERR_HEAD_TOO_LARGE;
        head->state = HEAD_BAD;
    }
    head->bytes = head->at;
    assert(head->state == HEAD_BAD || head->err == ERR_OK);
    return head->state;
}
