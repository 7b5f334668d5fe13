/* route: which row of route_table.h a request is for. */
#include "engine/http/route.h"

#include <assert.h>
#include <string.h>

static const struct route_row rows[ROUTE_COUNT] = {
#define ROUTE(row_name, row_methods, row_path, row_needs_key, row_has_body)                                            \
    [ROUTE_##                                                                                                          \
        row_name] = {.path = row_path,                                                                                 \
                     .methods = (row_methods) | METHOD_OPTIONS | (((row_methods)&METHOD_GET) != 0 ? METHOD_HEAD : 0),  \
                     .needs_key = row_needs_key,                                                                       \
                     .has_body = row_has_body},
#include "engine/http/route_table.h"
};

const struct route_row *route_row(enum route route)
{
    assert(route >= 0);
    assert(route < ROUTE_COUNT);
    return &rows[route];
}

static bool is_match(const char *pattern, const char *path, size_t path_bytes)
{
    size_t length = strlen(pattern);

    if (pattern[length - 1] == '*') {
        return path_bytes > length - 1 && memcmp(pattern, path, length - 1) == 0;
    }
    return path_bytes == length && memcmp(pattern, path, length) == 0;
}

enum err route_find(enum head_method method, const char *path, size_t path_bytes, enum route *route)
{
    for (int i = 0; i < ROUTE_COUNT; i++) {
        if (is_match(rows[i].path, path, path_bytes)) {
            *route = (enum route)i;
            return (rows[i].methods & (unsigned)method) != 0 ? ERR_OK : ERR_METHOD_NOT_ALLOWED;
        }
    }
    *route = ROUTE_COUNT;
    return ERR_NOT_FOUND;
}

size_t route_methods_text(unsigned methods, char *text)
{
    static const struct {
        enum head_method method;
        const char *name;
    } names[] = {{METHOD_GET, "GET"}, {METHOD_HEAD, "HEAD"}, {METHOD_POST, "POST"}, {METHOD_OPTIONS, "OPTIONS"}};
    size_t length = 0;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((methods & (unsigned)names[i].method) == 0) {
            continue;
        }
        if (length > 0) {
            memcpy(text + length, ", ", 2);
            length += 2;
        }
        memcpy(text + length, names[i].name, strlen(names[i].name));
        length += strlen(names[i].name);
    }
    assert(length < ROUTE_METHODS_BYTES);
    text[length] = '\0';
    return length;
}

const char *route_rest(enum route route, const char *path, size_t path_bytes, size_t *rest_bytes)
{
    size_t begin = strlen(route_row(route)->path) - 1;

    assert(rows[route].path[begin] == '*');
    assert(path_bytes > begin);
    *rest_bytes = path_bytes - begin;
    return path + begin;
}
