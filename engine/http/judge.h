/* judge: what becomes of a request whose head is complete, before a byte of its body is read. */
#ifndef ENGINE_HTTP_JUDGE_H
#define ENGINE_HTTP_JUDGE_H

#include "engine/http/conn.h"

/* Refuses it (404, 405, 401, 400, 413, 417, 503), answers it, or begins to read its body. Sets the connection's state.
 * A refused request whose body would follow ends the connection: the body is thrown away unread. */
void judge_request(struct http_server *server, struct conn *conn);

/* True if `value` is "Bearer " and the key; time does not depend on where they differ. */
bool judge_is_key(const char *value, size_t value_bytes, const char *key);

/* True if a Content-Type names JSON; parameters are ignored. */
bool judge_is_json(const char *value, size_t value_bytes);

#endif
