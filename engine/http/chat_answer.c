/* chat_answer: the answer of POST /v1/chat/completions, made from TOKENS as the engine appends to it.
 *
 * Always true between calls: what was written so far is a prefix of the one answer that this request can have, cut
 * between two events or two characters; nothing is read of the request that its holder may still write.
 */
#include "engine/http/chat_answer.h"

#include "engine/http/exchange.h"
#include "engine/http/http_server.h"
#include "engine/http/reply.h"
#include "engine/http/sse.h"

#include <assert.h>
#include <string.h>

enum {
    CONTENT_BYTES_MAX = 512,       /* of text in one event: six times as many when escaped */
    ENVELOPE_BYTES_MAX = 6 * 1024, /* everything of a whole answer but its text; of one event but its text */
    DONE_ROOM_BYTES = 14 + OUTBOX_FRAME_BYTES + 5,
};

/* One look at what the engine publishes. `finish` is read first: if it is set, the others are final. */
struct look {
    uint32_t finish, tokens;
    uint64_t bytes;
    bool is_done;
};

static struct look look_at(struct request *r)
{
    struct look look;

    look.is_done = atomic_load_explicit(&r->stage, memory_order_acquire) == REQUEST_DONE;
    look.finish = atomic_load_explicit(&r->finish, memory_order_acquire);
    look.bytes = atomic_load_explicit(&r->answer_bytes, memory_order_acquire);
    look.tokens = atomic_load_explicit(&r->answer_tokens, memory_order_acquire);
    if (look.is_done && look.finish == FINISH_NONE) {
        look.finish = FINISH_ABORT; /* ended without a finish: a refusal after tokens, or a cut */
    }
    return look;
}

void chat_answer_open(struct chat_answer *answer, bool is_http_1_0, bool is_closing)
{
    memset(answer, 0, sizeof *answer);
    answer->is_http_1_0 = is_http_1_0;
    answer->is_closing = is_closing;
}

/* The text that comes next and may be released, whole characters; 0: none for now. */
static size_t take_text(struct http_server *server, struct detok *text, const struct request *r,
                        const struct look *look, char *out, size_t capacity)
{
    return detok_read(text, server->facts.tokenizer, r->tokens + r->prompt_tokens, look->tokens,
                      look->finish != FINISH_NONE, look->bytes, out, capacity);
}

/* --- parts of both forms --- */

static void write_identity(struct json_out *json, const struct request *r, const char *object)
{
    json_out_key_text(json, "id", r->id);
    json_out_key_text(json, "object", object);
    json_out_key_i64(json, "created", (int64_t)r->created_s);
    json_out_key_text(json, "model", r->model);
}

static void write_finish(struct json_out *json, const struct request *r, uint32_t finish)
{
    static const char *const names[] = {NULL, "stop", "length", "abort"};

    assert(finish <= FINISH_ABORT);
    json_out_key(json, "finish_reason");
    if (finish == FINISH_NONE) {
        json_out_null(json);
    } else {
        json_out_text(json, names[finish]);
    }
    json_out_key(json, "matched_stop");
    if (finish == FINISH_STOP && r->matched_stop_string >= 0) {
        const struct stop_string *stop = &r->stop_strings[r->matched_stop_string];
        json_out_string(json, stop->text, stop->bytes);
    } else if (finish == FINISH_STOP && r->matched_stop_id >= 0) {
        json_out_i64(json, r->matched_stop_id);
    } else {
        json_out_null(json);
    }
}

/* null unless there is something to tell: cached tokens with --enable-cache-report, picture tokens always. */
static void write_usage(struct json_out *json, const struct request *r, uint32_t answer_tokens, bool is_cache_reported)
{
    uint32_t cached = is_cache_reported ? r->cached_tokens : 0;

    json_out_key(json, "usage");
    json_out_object_begin(json);
    json_out_key_i64(json, "prompt_tokens", r->prompt_tokens);
    json_out_key_i64(json, "completion_tokens", answer_tokens);
    json_out_key_i64(json, "total_tokens", (int64_t)r->prompt_tokens + answer_tokens);
    json_out_key_i64(json, "reasoning_tokens", 0);
    json_out_key(json, "prompt_tokens_details");
    if (cached > 0 || r->image_tokens > 0) {
        json_out_object_begin(json);
        json_out_key_i64(json, "cached_tokens", cached);
        if (r->image_tokens > 0) {
            json_out_key_i64(json, "image_tokens", r->image_tokens);
        }
        json_out_object_end(json);
    } else {
        json_out_null(json);
    }
    json_out_object_end(json);
}

/* --- a refusal, in place of an answer --- */

static enum err refusal_of(const struct exchange *exchange, const struct look *look)
{
    const struct request *r = &exchange->request;

    if (!look->is_done) {
        return ERR_OK;
    }
    bool is_cut = exchange->is_cut && (r->err == ERR_CLIENT_GONE || r->err == ERR_OK) && look->tokens == 0;
    if (is_cut && look->finish == FINISH_ABORT) {
        return ERR_SHUTTING_DOWN;
    }
    return r->err == ERR_CLIENT_GONE ? ERR_OK : r->err;
}

static enum chat_progress write_refusal(struct http_server *server, struct chat_answer *answer,
                                        const struct exchange *exchange, enum err err, struct outbox *outbox)
{
    const struct request *r = &exchange->request;
    bool is_own = err != ERR_SHUTTING_DOWN; /* read only when the request is ours again */
    size_t bytes = reply_error_json(err, is_own ? r->err_param : "", is_own ? r->err_detail : "", server->scratch);
    const struct reply_head head = {
        .status = err_row(err)->status,
        .content_type = "application/json",
        .framing = REPLY_LENGTH,
        .content_length = bytes,
        .is_keep_alive = !answer->is_closing,
        .is_http_1_0 = answer->is_http_1_0,
        .is_retryable = err_row(err)->is_retryable,
    };

    reply_add_head(outbox, &head);
    outbox_add(outbox, server->scratch, bytes);
    metrics_count_status(&server->metrics, head.status);
    answer->phase = CHAT_LAST;
    return CHAT_ENDED;
}

/* --- the whole answer at once --- */

/* The JSON before the text, then the JSON behind it, each into `out` of ENVELOPE_BYTES_MAX. */
static size_t write_before(const struct request *r, char *out)
{
    struct json_out json;

    json_out_open(&json, out, ENVELOPE_BYTES_MAX);
    json_out_object_begin(&json);
    write_identity(&json, r, "chat.completion");
    json_out_key(&json, "choices");
    json_out_array_begin(&json);
    json_out_object_begin(&json);
    json_out_key_i64(&json, "index", 0);
    json_out_key(&json, "message");
    json_out_object_begin(&json);
    json_out_key_text(&json, "role", "assistant");
    json_out_key(&json, "content");
    json_out_raw(&json, "\"", 1); /* the text and its closing quote follow */
    assert(!json.has_overflowed);
    return json.length;
}

static size_t write_behind(const struct request *r, const struct look *look, bool is_cache_reported, char *out)
{
    static const char tail[] = "\",\"reasoning_content\":null,\"tool_calls\":null},\"logprobs\":null,";
    struct json_out json;

    /* An object of its own, whose opening bracket the tail replaces, and whose closing one ends the choice. */
    json_out_open(&json, out + sizeof tail - 2, ENVELOPE_BYTES_MAX - sizeof tail);
    json_out_object_begin(&json);
    write_finish(&json, r, look->finish);
    json_out_object_end(&json);
    size_t length = sizeof tail - 2 + json.length;
    memcpy(out, tail, sizeof tail - 1);

    json_out_open(&json, out + length + 1, ENVELOPE_BYTES_MAX - length - 1);
    json_out_object_begin(&json);
    write_usage(&json, r, look->tokens, is_cache_reported);
    json_out_key(&json, "metadata");
    json_out_object_begin(&json);
    json_out_key_text(&json, "weight_version", "default");
    json_out_object_end(&json);
    json_out_object_end(&json);
    assert(json_out_is_whole(&json));
    out[length] = ']';
    out[length + 1] = ',';
    return length + 1 + json.length;
}

static uint64_t measure_text(struct http_server *server, struct detok text, const struct request *r,
                             const struct look *look)
{
    char piece[CONTENT_BYTES_MAX];
    uint64_t escaped_bytes = 0;
    size_t length;

    while ((length = take_text(server, &text, r, look, piece, sizeof piece)) > 0) {
        escaped_bytes += json_escaped_bytes(piece, length);
    }
    return escaped_bytes;
}

/* Writes text from where the cursor is, escaped. True when all that is released is written. */
static bool write_text(struct http_server *server, struct detok *text, const struct request *r, const struct look *look,
                       struct outbox *outbox)
{
    char piece[CONTENT_BYTES_MAX];

    while (outbox_room(outbox) >= CONTENT_BYTES_MAX * JSON_ESCAPE_BYTES_MAX) {
        size_t length = take_text(server, text, r, look, piece, sizeof piece);
        size_t at = 0;
        if (length == 0) {
            return true;
        }
        outbox_wrote(outbox, json_escape(piece, length, &at, outbox_place(outbox), outbox_room(outbox)));
        assert(at == length);
    }
    return false;
}

static enum chat_progress fill_whole(struct http_server *server, struct chat_answer *answer, const struct request *r,
                                     const struct look *look, struct outbox *outbox)
{
    bool is_cache_reported = server->facts.options->enable_cache_report;

    if (look->finish == FINISH_NONE) {
        return CHAT_WAITS;
    }
    if (answer->phase == CHAT_HEAD) {
        if (outbox_room(outbox) < REPLY_HEAD_BYTES_MAX + ENVELOPE_BYTES_MAX) {
            return CHAT_WANTS_ROOM;
        }
        size_t before = write_before(r, server->scratch);
        size_t behind = write_behind(r, look, is_cache_reported, server->scratch);
        const struct reply_head head = {
            .status = 200,
            .content_type = "application/json",
            .framing = REPLY_LENGTH,
            .content_length = before + measure_text(server, answer->text, r, look) + behind,
            .is_keep_alive = !answer->is_closing,
            .is_http_1_0 = answer->is_http_1_0,
        };
        reply_add_head(outbox, &head);
        outbox_wrote(outbox, write_before(r, outbox_place(outbox)));
        metrics_count_status(&server->metrics, 200);
        answer->phase = CHAT_CONTENT;
    }
    if (answer->phase == CHAT_CONTENT) {
        if (!write_text(server, &answer->text, r, look, outbox)) {
            return CHAT_WANTS_ROOM;
        }
        answer->phase = CHAT_FINISH;
    }
    if (outbox_room(outbox) < ENVELOPE_BYTES_MAX) {
        return CHAT_WANTS_ROOM;
    }
    outbox_wrote(outbox, write_behind(r, look, is_cache_reported, outbox_place(outbox)));
    answer->phase = CHAT_LAST;
    return CHAT_ENDED;
}

/* --- the answer as a stream --- */

static void begin_chunk(const struct chat_answer *answer, const struct request *r, struct outbox *outbox,
                        struct json_out *json)
{
    sse_begin(outbox, answer->is_chunked, json);
    json_out_object_begin(json);
    write_identity(json, r, "chat.completion.chunk");
    json_out_key(json, "choices");
    json_out_array_begin(json);
}

/* What stands in "delta". */
struct delta {
    const char *role;    /* NULL: left out */
    const char *content; /* NULL: left out */
    size_t content_bytes;
    uint32_t finish;
};

static void write_choice(struct http_server *server, const struct chat_answer *answer, const struct request *r,
                         const struct look *look, const struct delta *delta, struct outbox *outbox)
{
    struct json_out json;

    begin_chunk(answer, r, outbox, &json);
    json_out_object_begin(&json);
    json_out_key_i64(&json, "index", 0);
    json_out_key(&json, "delta");
    json_out_object_begin(&json);
    if (delta->role != NULL) {
        json_out_key_text(&json, "role", delta->role);
    }
    if (delta->content != NULL) {
        json_out_key(&json, "content");
        json_out_string(&json, delta->content, delta->content_bytes);
    }
    json_out_key(&json, "reasoning_content");
    json_out_null(&json);
    json_out_object_end(&json);
    json_out_key(&json, "logprobs");
    json_out_null(&json);
    write_finish(&json, r, delta->finish);
    json_out_object_end(&json);
    json_out_array_end(&json);
    if (r->wants_continuous_usage) {
        write_usage(&json, r, look->tokens, server->facts.options->enable_cache_report);
    }
    json_out_object_end(&json);
    sse_end(outbox, &json);
}

static void write_usage_chunk(struct http_server *server, const struct chat_answer *answer, const struct request *r,
                              const struct look *look, struct outbox *outbox)
{
    struct json_out json;

    begin_chunk(answer, r, outbox, &json);
    json_out_array_end(&json);
    write_usage(&json, r, look->tokens, server->facts.options->enable_cache_report);
    json_out_object_end(&json);
    sse_end(outbox, &json);
}

/* A refusal when 200 is already on its way. */
static void write_error_event(struct http_server *server, const struct chat_answer *answer, enum err err,
                              const char *param, const char *detail, struct outbox *outbox)
{
    struct json_out json;
    size_t bytes = reply_error_json(err, param, detail, server->scratch);

    sse_begin(outbox, answer->is_chunked, &json);
    json_out_raw(&json, server->scratch, bytes);
    sse_end(outbox, &json);
}

static void begin_stream(struct http_server *server, struct chat_answer *answer, struct outbox *outbox)
{
    answer->is_chunked = !answer->is_http_1_0;
    answer->is_closing = answer->is_closing || answer->is_http_1_0;
    const struct reply_head head = {
        .status = 200,
        .content_type = "text/event-stream; charset=utf-8",
        .framing = answer->is_chunked ? REPLY_CHUNKED : REPLY_UNTIL_CLOSE,
        .is_keep_alive = !answer->is_closing,
        .is_http_1_0 = answer->is_http_1_0,
    };
    reply_add_head(outbox, &head);
    metrics_count_status(&server->metrics, 200);
    answer->phase = CHAT_ROLE;
}

/* False: all that is released is written. */
static bool write_content(struct http_server *server, struct chat_answer *answer, const struct request *r,
                          const struct look *look, struct outbox *outbox)
{
    char piece[CONTENT_BYTES_MAX];
    size_t length = take_text(server, &answer->text, r, look, piece, sizeof piece);

    if (length > 0) {
        write_choice(server, answer, r, look, &(struct delta){.content = piece, .content_bytes = length}, outbox);
    }
    return length > 0;
}

/* One event of a stream; the outbox has room. False: there is none to be written now. */
static bool fill_event(struct http_server *server, struct chat_answer *answer, const struct request *r,
                       const struct look *look, struct outbox *outbox)
{
    switch (answer->phase) {
    case CHAT_HEAD:
        begin_stream(server, answer, outbox);
        break;
    case CHAT_ROLE:
        write_choice(server, answer, r, look, &(struct delta){.role = "assistant", .content = ""}, outbox);
        answer->phase = CHAT_CONTENT;
        break;
    case CHAT_CONTENT:
        if (!write_content(server, answer, r, look, outbox)) {
            answer->phase = look->finish != FINISH_NONE ? CHAT_FINISH : CHAT_CONTENT;
            return look->finish != FINISH_NONE;
        }
        break;
    case CHAT_FINISH:
        if (look->is_done && r->err != ERR_OK && r->err != ERR_CLIENT_GONE) {
            write_error_event(server, answer, r->err, r->err_param, r->err_detail, outbox);
            answer->phase = CHAT_LAST;
            break;
        }
        write_choice(server, answer, r, look, &(struct delta){.finish = look->finish}, outbox);
        answer->phase = r->wants_usage ? CHAT_USAGE : CHAT_LAST;
        break;
    case CHAT_USAGE:
        write_usage_chunk(server, answer, r, look, outbox);
        answer->phase = CHAT_LAST;
        break;
    case CHAT_LAST:
        break;
    }
    return true;
}

static enum chat_progress fill_stream(struct http_server *server, struct chat_answer *answer, const struct request *r,
                                      const struct look *look, struct outbox *outbox)
{
    _Static_assert(SSE_ROOM_BYTES + DONE_ROOM_BYTES <= CONN_WRITE_BYTES, "an event and the end fit together");
    _Static_assert((int)REPLY_ERROR_BYTES_MAX <= (int)API_PIECE_BYTES_MAX, "scratch holds either");
    _Static_assert((int)REPLY_ERROR_BYTES_MAX <= (int)SSE_EVENT_BYTES_MAX, "an event holds a refusal");

    for (;;) {
        if (outbox_room(outbox) < SSE_ROOM_BYTES + DONE_ROOM_BYTES) {
            return CHAT_WANTS_ROOM;
        }
        if (answer->phase == CHAT_LAST) {
            sse_done(outbox, answer->is_chunked);
            return CHAT_ENDED;
        }
        if (!fill_event(server, answer, r, look, outbox)) {
            return CHAT_WAITS;
        }
    }
}

enum chat_progress chat_answer_fill(struct http_server *server, struct chat_answer *answer, struct exchange *exchange,
                                    struct outbox *outbox)
{
    struct request *r = &exchange->request;
    const struct look look = look_at(r);

    if (answer->phase == CHAT_HEAD) {
        if (!look.is_done && look.finish == FINISH_NONE && look.tokens == 0) {
            return CHAT_WAITS;
        }
        enum err err = refusal_of(exchange, &look);
        if (err != ERR_OK) {
            return write_refusal(server, answer, exchange, err, outbox);
        }
        answer->is_closing = answer->is_closing || !http_server_is_open(server);
        answer->is_stream = r->is_stream;
        detok_open(&answer->text, r->skip_special_tokens);
    }
    return answer->is_stream ? fill_stream(server, answer, r, &look, outbox)
                             : fill_whole(server, answer, r, &look, outbox);
}

void chat_answer_abandon(struct http_server *server, struct chat_answer *answer, const struct exchange *exchange,
                         struct outbox *outbox)
{
    if (answer->phase == CHAT_HEAD && outbox_room(outbox) >= REPLY_HEAD_BYTES_MAX + REPLY_ERROR_BYTES_MAX) {
        answer->is_closing = true;
        (void)write_refusal(server, answer, exchange, ERR_SHUTTING_DOWN, outbox);
    } else if (answer->phase != CHAT_HEAD && answer->is_stream &&
               outbox_room(outbox) >= SSE_ROOM_BYTES + DONE_ROOM_BYTES) {
        write_error_event(server, answer, ERR_SHUTTING_DOWN, "", "", outbox);
        sse_done(outbox, answer->is_chunked);
    }
}
