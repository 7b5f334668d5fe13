/* field: single values of a request's JSON, with their type and range, or the refusal that names them. */
#include "engine/http/field.h"

#include <assert.h>
#include <math.h>

static enum err refuse_json(struct field_reader *reader, enum err err)
{
    return request_refuse(reader->request, err, "", "%s at byte %zu", reader->json.reason, reader->json.error_at);
}

enum err field_next(struct field_reader *reader, struct json_event *event)
{
    enum err err = json_next(&reader->json, event);
    return err == ERR_OK ? ERR_OK : refuse_json(reader, err);
}

enum err field_skip(struct field_reader *reader)
{
    struct json_span span;
    enum err err = json_skip_raw(&reader->json, &span);
    return err == ERR_OK ? ERR_OK : refuse_json(reader, err);
}

enum err field_refuse(struct field_reader *reader, const char *name, const char *what)
{
    return request_refuse(reader->request, ERR_BAD_FIELD, name, "%s must be %s", name, what);
}

enum err field_number(struct field_reader *reader, const struct json_event *event, const char *name, double minimum,
                      double maximum, bool is_open, const char *range, float *value)
{
    double number;

    if (event->kind != JSON_NUMBER) {
        return field_refuse(reader, name, "a number");
    }
    if (!json_number_f64(event->text, event->bytes, &number) || !isfinite(number) || number < minimum ||
        number > maximum || (is_open && (float)number <= (float)minimum)) {
        return field_refuse(reader, name, range);
    }
    *value = (float)number;
    assert(isfinite(*value));
    return ERR_OK;
}

enum err field_whole(struct field_reader *reader, const struct json_event *event, const char *name, int64_t minimum,
                     int64_t maximum, const char *range, int64_t *value)
{
    int64_t number;

    if (event->kind != JSON_NUMBER) {
        return field_refuse(reader, name, "a whole number");
    }
    if (!json_number_i64(event->text, event->bytes, &number) || number < minimum || number > maximum) {
        return field_refuse(reader, name, range);
    }
    *value = number;
    return ERR_OK;
}

enum err field_switch(struct field_reader *reader, const struct json_event *event, const char *name, bool *value)
{
    if (event->kind != JSON_TRUE && event->kind != JSON_FALSE) {
        return field_refuse(reader, name, "true or false");
    }
    *value = event->kind == JSON_TRUE;
    return ERR_OK;
}

enum err field_expect(struct field_reader *reader, const struct json_event *event, const char *name,
                      enum json_kind kind)
{
    if (event->kind == kind) {
        return ERR_OK;
    }
    return field_refuse(reader, name,
                        kind == JSON_OBJECT_BEGIN  ? "an object"
                        : kind == JSON_ARRAY_BEGIN ? "a list"
                                                   : "a string");
}
