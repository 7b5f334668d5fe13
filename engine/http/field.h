/* field: single values of a request's JSON, with their type and range, or the refusal that names them. */
#ifndef ENGINE_HTTP_FIELD_H
#define ENGINE_HTTP_FIELD_H

#include "engine/json.h"
#include "engine/request.h"

/* A reader over a body and the request that is refused when a value is wrong. */
struct field_reader {
    struct json_reader json;
    struct request *request;
};

/* The next event; a refusal says where the JSON is broken. */
enum err field_next(struct field_reader *reader, struct json_event *event) ERR_CHECKED;

/* Skips the value that comes, which is left untouched. */
enum err field_skip(struct field_reader *reader) ERR_CHECKED;

/* Refuses: `what` ("a string", "in [0, 1]") is what it must be. */
enum err field_refuse(struct field_reader *reader, const char *name, const char *what) ERR_CHECKED;

/* The values of events that were read. `name` is the path for the refusal. */
enum err field_number(struct field_reader *reader, const struct json_event *event, const char *name, double minimum,
                      double maximum, bool is_open, const char *range, float *value) ERR_CHECKED;
enum err field_whole(struct field_reader *reader, const struct json_event *event, const char *name, int64_t minimum,
                     int64_t maximum, const char *range, int64_t *value) ERR_CHECKED;
enum err field_switch(struct field_reader *reader, const struct json_event *event, const char *name,
                      bool *value) ERR_CHECKED;

/* The kind that an event must have, or the refusal. */
enum err field_expect(struct field_reader *reader, const struct json_event *event, const char *name,
                      enum json_kind kind) ERR_CHECKED;

#endif
