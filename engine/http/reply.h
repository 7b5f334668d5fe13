/* reply: status line and headers of an answer, and the bodies of refusals. */
#ifndef ENGINE_HTTP_REPLY_H
#define ENGINE_HTTP_REPLY_H

#include "engine/err.h"
#include "engine/http/outbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum reply_framing {
    REPLY_NO_BODY,    /* 204: no body, no length */
    REPLY_LENGTH,     /* Content-Length */
    REPLY_CHUNKED,    /* length unknown, HTTP/1.1 */
    REPLY_UNTIL_CLOSE /* length unknown, HTTP/1.0: the end of the connection ends it */
};

struct reply_head {
    int status;
    const char *content_type; /* NULL: none */
    enum reply_framing framing;
    uint64_t content_length; /* REPLY_LENGTH */
    bool is_keep_alive, is_http_1_0;
    bool is_retryable;         /* adds Retry-After */
    unsigned allowed_methods;  /* not 0: adds Allow */
    const char *asked_headers; /* not NULL: a preflight's list, echoed as allowed */
    size_t asked_headers_bytes;
};

enum {
    REPLY_HEAD_BYTES_MAX = 2048,
    REPLY_ASKED_BYTES_MAX = 1024,     /* a longer list of asked headers is not echoed */
    REPLY_ERROR_BYTES_MAX = 9 * 1024, /* both forms of a refusal, everything escaped */
    REPLY_RETRY_AFTER_S = 1,
};

/* Appends the head. The outbox has room for REPLY_HEAD_BYTES_MAX. */
void reply_add_head(struct outbox *outbox, const struct reply_head *head);

/* "Sun, 06 Nov 1994 08:49:37 GMT" into `text` of REPLY_DATE_BYTES (years up to 9999). Returns its length. */
enum { REPLY_DATE_BYTES = 30 };
size_t reply_date_text(int64_t unix_s, char *text);

/* The JSON of a refusal in both forms at once: flat as SGLang's, and nested under "error" as OpenAI's. The message is
 * the err_table text and, behind ": ", `detail`; `param` "" is null. Any bytes in either: they are escaped. `out` has
 * REPLY_ERROR_BYTES_MAX. Returns the length. */
size_t reply_error_json(enum err err, const char *param, const char *detail, char *out);

#endif
