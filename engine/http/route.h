/* route: which row of route_table.h a request is for. */
#ifndef ENGINE_HTTP_ROUTE_H
#define ENGINE_HTTP_ROUTE_H

#include "engine/http/head.h"

enum route {
#define ROUTE(name, methods, path, needs_key, has_body) ROUTE_##name,
#include "engine/http/route_table.h"
    ROUTE_COUNT /* none */
};

struct route_row {
    const char *path;
    unsigned methods; /* HEAD and OPTIONS included */
    bool needs_key, has_body;
};

/* The row; asserts that it is in range. Constant data. */
const struct route_row *route_row(enum route route);

/* Finds the row for a path and checks the method. ERR_NOT_FOUND: no row (*route is ROUTE_COUNT).
 * ERR_METHOD_NOT_ALLOWED: *route is the row, whose methods go into Allow. */
enum err route_find(enum head_method method, const char *path, size_t path_bytes, enum route *route) ERR_CHECKED;

/* "GET, HEAD, OPTIONS" into `text`, which holds ROUTE_METHODS_BYTES. Returns its length. */
enum { ROUTE_METHODS_BYTES = 32 };
size_t route_methods_text(unsigned methods, char *text);

/* The rest of a path behind a row's '*'. */
const char *route_rest(enum route route, const char *path, size_t path_bytes, size_t *rest_bytes);

#endif
