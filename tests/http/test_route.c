/* test_route: paths match whole rows, methods are those of the row, and Allow says so. */
#include "engine/http/route.h"
#include "tests/harness.h"

#include <string.h>

static enum err find(enum head_method method, const char *path, enum route *route)
{
    return route_find(method, path, strlen(path), route);
}

static void every_row_is_found_by_its_path(void)
{
    for (int i = 0; i < ROUTE_COUNT; i++) {
        const struct route_row *row = route_row((enum route)i);
        char path[64];
        enum route route;
        (void)strncpy(path, row->path, sizeof path - 1);
        char *star = strchr(path, '*');
        if (star != NULL) {
            *star = 'x';
        }
        CU_ASSERT(find((row->methods & METHOD_POST) != 0 ? METHOD_POST : METHOD_GET, path, &route) == ERR_OK);
        CU_ASSERT(route == (enum route)i);
        CU_ASSERT(find(METHOD_OPTIONS, path, &route) == ERR_OK);
        CU_ASSERT(find(METHOD_OTHER, path, &route) == ERR_METHOD_NOT_ALLOWED && route == (enum route)i);
        CU_ASSERT(((row->methods & METHOD_HEAD) != 0) == ((row->methods & METHOD_GET) != 0));
    }
}

static void nothing_near_a_path_is_found(void)
{
    static const char *const paths[] = {"",         "/v1",      "/v1/models/",         "/health/",
                                        "/HEALTH",  "//health", "/v1/chat/completion", "/v1/completions",
                                        "/generate"};
    enum route route;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        CU_ASSERT(find(METHOD_GET, paths[i], &route) == ERR_NOT_FOUND && route == ROUTE_COUNT);
    }
}

static void a_star_takes_the_rest_whatever_it_holds(void)
{
    static const char path[] = "/v1/models/org/name";
    enum route route;
    size_t rest_bytes;

    CU_ASSERT(find(METHOD_GET, path, &route) == ERR_OK && route == ROUTE_MODEL);
    const char *rest = route_rest(route, path, sizeof path - 1, &rest_bytes);
    CU_ASSERT(rest_bytes == 8 && memcmp(rest, "org/name", 8) == 0);
}

static void methods_are_listed_for_allow(void)
{
    char text[ROUTE_METHODS_BYTES];

    CU_ASSERT(route_methods_text(METHOD_GET | METHOD_HEAD | METHOD_POST | METHOD_OPTIONS, text) == strlen(text));
    CU_ASSERT_STRING_EQUAL(text, "GET, HEAD, POST, OPTIONS");
    (void)route_methods_text(METHOD_POST, text);
    CU_ASSERT_STRING_EQUAL(text, "POST");
}

static void only_health_and_metrics_are_open(void)
{
    for (int i = 0; i < ROUTE_COUNT; i++) {
        const struct route_row *row = route_row((enum route)i);
        bool is_open = strncmp(row->path, "/health", 7) == 0 || strncmp(row->path, "/metrics", 8) == 0;
        CU_ASSERT(row->needs_key == !is_open);
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_row_is_found_by_its_path),          CASE(nothing_near_a_path_is_found),
        CASE(a_star_takes_the_rest_whatever_it_holds), CASE(methods_are_listed_for_allow),
        CASE(only_health_and_metrics_are_open),        {NULL, NULL},
    };
    return harness_run(argc, argv, "http/route", cases, NULL);
}
