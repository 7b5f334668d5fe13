/* ask: one question through the whole engine, without HTTP.
 *
 * The question becomes the JSON body that a client would send, and goes the way of every body.
 */
#include "engine/ask.h"

#include "engine/clock.h"
#include "engine/json_out.h"
#include "engine/request.h"
#include "engine/start.h"
#include "engine/text/detok.h"
#include "pools/pools.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { PIECE_BYTES = 4096 };

static const char DATA_URL[] = "\"data:;base64,";

/* A picture's file, mapped before the seal. */
struct ask_file {
    unsigned char *bytes;
    uint64_t length;
};

/* `out` gets 4 bytes for each 3, padded. Returns their number. */
static size_t write_base64(const unsigned char *bytes, size_t count, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = 0;

    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t word = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (left > 2 ? (uint32_t)bytes[i + 2] : 0);
        out[length++] = digits[word >> 18];
        out[length++] = digits[word >> 12 & 63];
        out[length++] = left > 1 ? digits[word >> 6 & 63] : '=';
        out[length++] = left > 2 ? digits[word & 63] : '=';
    }
    return length;
}

/* One picture part. Its data URL is built at the end of the body's memory and moves to its place from there. */
static void write_picture(struct json_out *out, const char *path)
{
    struct ask_file file;

    file.bytes = domain_file_map(path, &file.length);
    if (file.bytes == NULL) {
        start_refuse(START_USAGE, "--image %s: %s", path, start_errno_text(errno));
    }
    uint64_t url_bytes = sizeof DATA_URL - 1 + (file.length + 2) / 3 * 4 + 1;
    if (url_bytes > (out->capacity - out->length) / 2) {
        start_refuse(START_USAGE, "--image %s: %llu bytes are too many (--large-body-bytes)", path,
                     (unsigned long long)file.length);
    }
    char *url = out->bytes + out->capacity - url_bytes;
    memcpy(url, DATA_URL, sizeof DATA_URL - 1);
    size_t length = sizeof DATA_URL - 1;
    length += write_base64(file.bytes, (size_t)file.length, url + length);
    url[length++] = '"';
    json_out_object_begin(out);
    json_out_key_text(out, "type", "image_url");
    json_out_key(out, "image_url");
    json_out_object_begin(out);
    json_out_key(out, "url");
    json_out_raw(out, url, length);
    json_out_object_end(out);
    json_out_object_end(out);
    domain_file_unmap(file.bytes, file.length);
}

/* The body of a chat request. */
static size_t write_body(const struct options *options, char *body, size_t capacity)
{
    struct json_out out;

    json_out_open(&out, body, capacity);
    json_out_object_begin(&out);
    json_out_key(&out, "temperature");
    json_out_f64(&out, options->temperature);
    if (options->max_tokens > 0) {
        json_out_key_i64(&out, "max_tokens", options->max_tokens);
    }
    json_out_key(&out, "messages");
    json_out_array_begin(&out);
    json_out_object_begin(&out);
    json_out_key_text(&out, "role", "user");
    json_out_key(&out, "content");
    json_out_array_begin(&out);
    for (uint32_t i = 0; i < options->image.count; i++) {
        write_picture(&out, options->image.paths[i]);
    }
    json_out_object_begin(&out);
    json_out_key_text(&out, "type", "text");
    json_out_key_text(&out, "text", options->question);
    json_out_object_end(&out);
    json_out_array_end(&out);
    json_out_object_end(&out);
    json_out_array_end(&out);
    json_out_object_end(&out);
    if (!json_out_is_whole(&out)) {
        start_refuse(START_USAGE, "the question is too long (--large-body-bytes)");
    }
    return out.length;
}

struct request *ask_prepare(struct boot *boot)
{
    slab_handle handle = pools_get(POOL_REQUEST), tokens = pools_get(POOL_TOKENS), body = pools_get(POOL_BODY_LARGE);

    assert(slab_is_some(handle) && slab_is_some(tokens) && slab_is_some(body));
    struct request *request = pools_at(POOL_REQUEST, handle);
    request_open(request, handle.index, 1, clock_now_us(), (uint64_t)clock_unix_seconds());
    (void)snprintf(request->id, sizeof request->id, "ask");
    request->tokens = pools_at(POOL_TOKENS, tokens);
    request->body = pools_at(POOL_BODY_LARGE, body);
    request->body_bytes =
        write_body(boot->options, (char *)request->body, (size_t)pools_element_bytes(POOL_BODY_LARGE));
    return request;
}

/* Prints what is new of the answer: as it is, or escaped for the middle of a JSON string. */
static void print_new(const struct boot *boot, struct request *request, struct detok *detok)
{
    char piece[PIECE_BYTES], escaped[PIECE_BYTES * JSON_ESCAPE_BYTES_MAX];
    bool is_final = atomic_load_explicit(&request->finish, memory_order_acquire) != FINISH_NONE;
    uint64_t limit_bytes = atomic_load_explicit(&request->answer_bytes, memory_order_acquire);
    uint32_t count = atomic_load_explicit(&request->answer_tokens, memory_order_acquire);
    size_t length;

    while (detok->text_bytes < limit_bytes &&
           (length = detok_read(detok, &boot->tokenizer, request->tokens + request->prompt_tokens, count, is_final,
                                limit_bytes, piece, sizeof piece)) > 0) {
        size_t at = 0;
        if (boot->options->json) {
            start_print(escaped, json_escape(piece, length, &at, escaped, sizeof escaped));
        } else {
            start_print(piece, length);
        }
    }
}

/* Waits for the engine, and prints as it goes. */
static void follow(struct boot *boot, struct request *request)
{
    struct pollfd watch = {.fd = engine_notice_fd(boot->engine), .events = POLLIN};
    struct detok detok;
    uint32_t index;
    bool is_done = false, is_open = false;

    while (!is_done) {
        (void)poll(&watch, 1, -1);
        engine_notice_clear(boot->engine);
        while (engine_notice_take(boot->engine, &index)) {
        }
        is_done = atomic_load_explicit(&request->stage, memory_order_acquire) == REQUEST_DONE;
        if (!is_open && atomic_load_explicit(&request->answer_tokens, memory_order_acquire) > 0) {
            detok_open(&detok, request->skip_special_tokens);
            is_open = true;
        }
        if (is_open) {
            print_new(boot, request, &detok);
        }
    }
}

static void print_end(const struct boot *boot, struct request *request)
{
    static const char *const finishes[] = {"none", "stop", "length", "abort"};
    char text[512];
    uint64_t first_us = atomic_load_explicit(&request->first_token_us, memory_order_relaxed);
    uint64_t last_us = atomic_load_explicit(&request->finished_us, memory_order_relaxed);
    uint32_t finish = atomic_load_explicit(&request->finish, memory_order_relaxed);
    int length = 1;

    assert(finish < sizeof finishes / sizeof finishes[0]);
    text[0] = '\n';
    if (boot->options->json) {
        length = snprintf(text, sizeof text,
                          "\", \"finish_reason\": \"%s\", \"prompt_tokens\": %u, \"image_tokens\": %u, "
                          "\"completion_tokens\": %u, \"first_token_ms\": %llu, \"total_ms\": %llu}\n",
                          finishes[finish], request->prompt_tokens, request->image_tokens,
                          atomic_load_explicit(&request->answer_tokens, memory_order_relaxed),
                          (unsigned long long)(first_us - request->arrived_us) / 1000,
                          (unsigned long long)(last_us - request->arrived_us) / 1000);
    }
    start_print(text, (unsigned long)length);
}

int ask_run(struct boot *boot, struct request *request)
{
    static const char opening[] = "{\"answer\": \"";
    char text[LOG_LINE_BYTES_MAX];

    assert(request->body_bytes > 0);
    request->arrived_us = clock_now_us();
    if (boot->options->json) {
        start_print(opening, sizeof opening - 1);
    }
    engine_submit(boot->engine, request);
    follow(boot, request);
    if (request->err != ERR_OK) {
        int length = snprintf(text, sizeof text, "ashlar: %s: %s\n", err_row(request->err)->text, request->err_detail);
        start_print_error(text, length < (int)sizeof text ? (unsigned long)length : sizeof text - 1);
        return 1;
    }
    print_end(boot, request);
    return 0;
}
