/* fuzz_json: reading in place, reading raw and skipping agree on every input; what is unescaped is what was there. */
#include "engine/json.h"
#include "tests/fuzz/fuzz.h"

/* Both readers give the same kinds at the same places. */
static enum err read_both(char *writable, const char *raw, size_t bytes, char *room)
{
    struct json_reader reader, raw_reader;
    struct json_event event = {.kind = JSON_NONE}, raw_event;
    enum err err = ERR_OK;

    json_open(&reader, writable, bytes);
    json_open_raw(&raw_reader, raw, bytes);
    while (event.kind != JSON_END) {
        err = json_next(&reader, &event);
        enum err raw_err = json_next(&raw_reader, &raw_event);
        fuzz_demand(err == raw_err, "both readers agree");
        if (err != ERR_OK) {
            fuzz_demand(reader.reason != NULL && reader.error_at <= bytes, "a refusal says why and where");
            return err;
        }
        fuzz_demand(event.kind == raw_event.kind && event.at == raw_event.at, "the events are the same");
        if (event.kind == JSON_STRING || event.kind == JSON_KEY) {
            size_t length = json_unescape(raw_event.text, raw_event.bytes, room);
            fuzz_demand(length == event.bytes && memcmp(room, event.text, length) == 0, "the strings are the same");
        } else if (event.kind == JSON_NUMBER) {
            int64_t whole;
            double real;
            (void)json_number_i64(event.text, event.bytes, &whole);
            (void)json_number_f64(event.text, event.bytes, &real);
        }
    }
    return ERR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *writable = fuzz_copy(data, bytes), *raw = fuzz_copy(data, bytes), *room = fuzz_copy(data, bytes);
    struct json_reader reader;
    struct json_event event;
    struct json_span span;

    enum err err = read_both(writable, raw, bytes, room);
    json_open_raw(&reader, raw, bytes);
    enum err skip_err = json_skip_raw(&reader, &span);
    if (skip_err == ERR_OK) {
        fuzz_demand(span.length <= bytes, "a span lies in the document");
        skip_err = json_next(&reader, &event);
    }
    fuzz_demand(err == skip_err, "skipping refuses what reading refuses");
    fuzz_demand(bytes == 0 || memcmp(raw, data, bytes) == 0, "a raw reader never writes");
    free(writable);
    free(raw);
    free(room);
    return 0;
}
