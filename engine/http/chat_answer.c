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

static struct look look_at(const struct exchange *choice)
{
    const struct request *r = &choice->request;
    struct look look;

    look.is_done = atomic_load_explicit(&r->stage, memory_order_acquire) == REQUEST_DONE;
    look.finish = atomic_load_explicit(&r->finish, memory_order_acquire);
    look.bytes = atomic_load_explicit(&r->answer_bytes, memory_order_acquire);
    look.tokens = atomic_load_explicit(&r->answer_tokens, memory_order_acquire);
    if (look.is_done && look.finish == FINISH_NONE) {
        look.finish = FINISH_ABORT; /* ended without a finish: a refusal after tokens, or a cut */
    } else if (!look.is_done && look.finish == FINISH_ABORT) {
        look.finish = FINISH_NONE; /* why, is known when it is ours */
    }
    return look;
}

/* Of all choices. */
static uint64_t count_tokens(const struct exchange *first)
{
    uint64_t tokens = 0;

    for (const struct exchange *e = first; e != NULL; e = e->next_choice) {
        tokens += look_at(e).tokens;
    }
    return tokens;
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

/* The prompt counts once, however many choices. Details are null unless there is something to tell: cached tokens with
 * --enable-cache-report, picture tokens always. */
static void write_usage(const struct http_server *server, struct json_out *json, const struct exchange *first,
                        uint64_t answer_tokens)
{
    const struct request *r = &first->request;
    uint32_t cached = server->facts.options->enable_cache_report ? r->cached_tokens : 0;

    json_out_key(json, "usage");
    json_out_object_begin(json);
    json_out_key_i64(json, "prompt_tokens", r->prompt_tokens);
    json_out_key_i64(json, "completion_tokens", (int64_t)answer_tokens);
    json_out_key_i64(json, "total_tokens", (int64_t)(r->prompt_tokens + answer_tokens));
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

/* The refusal that is the answer, and the choice that got it. ERR_OK: there is none, or none yet. */
static enum err refusal_of(const struct exchange *first, const struct request **refused)
{
    bool is_over = true, is_cut = false;

    for (const struct exchange *e = first; e != NULL; e = e->next_choice) {
        bool is_done = look_at(e).is_done;
        *refused = &e->request;
        if (is_done && e->request.err != ERR_OK && e->request.err != ERR_CLIENT_GONE) {
            return e->request.err;
        }
        is_over = is_over && is_done;
        is_cut = is_cut || e->is_cut;
    }
    return is_over && is_cut && count_tokens(first) == 0 ? ERR_SHUTTING_DOWN : ERR_OK;
}

/* `r` is NULL if it is the server's refusal and not the request's own. */
static enum chat_progress write_refusal(struct http_server *server, struct chat_answer *answer, const struct request *r,
                                        enum err err, struct outbox *outbox)
{
    size_t bytes =
        reply_error_json(err, r != NULL ? r->err_param : "", r != NULL ? r->err_detail : "", server->scratch);
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

/* The JSON before the choices; of a choice, before its text and behind it; behind the choices. Each into `out` of
 * ENVELOPE_BYTES_MAX; each returns its length. */
static size_t write_opening(const struct request *r, char *out)
{
    struct json_out json;

    json_out_open(&json, out, ENVELOPE_BYTES_MAX);
    json_out_object_begin(&json);
    write_identity(&json, r, "chat.completion");
    json_out_key(&json, "choices");
    json_out_array_begin(&json);
    assert(!json.has_overflowed);
    return json.length;
}

static size_t write_before(const struct request *r, char *out)
{
    size_t comma = r->choice > 0;
    struct json_out json;

    out[0] = ',';
    json_out_open(&json, out + comma, ENVELOPE_BYTES_MAX - comma);
    json_out_object_begin(&json);
    json_out_key_i64(&json, "index", r->choice);
    json_out_key(&json, "message");
    json_out_object_begin(&json);
    json_out_key_text(&json, "role", "assistant");
    json_out_key(&json, "content");
    json_out_raw(&json, "\"", 1); /* the text and its closing quote follow */
    assert(!json.has_overflowed);
    return comma + json.length;
}

static size_t write_behind(const struct request *r, const struct look *look, char *out)
{
    static const char tail[] = "\",\"reasoning_content\":null,\"tool_calls\":null},\"logprobs\":null,";
    struct json_out json;

    /* An object of its own, whose opening bracket the tail replaces, and whose closing one ends the choice. */
    json_out_open(&json, out + sizeof tail - 2, ENVELOPE_BYTES_MAX - sizeof tail);
    json_out_object_begin(&json);
    write_finish(&json, r, look->finish);
    json_out_object_end(&json);
    assert(json_out_is_whole(&json));
    memcpy(out, tail, sizeof tail - 1);
    return sizeof tail - 2 + json.length;
}

static size_t write_ending(const struct http_server *server, const struct exchange *first, char *out)
{
    struct json_out json;

    json_out_open(&json, out + 1, ENVELOPE_BYTES_MAX - 1);
    json_out_object_begin(&json); /* its bracket becomes a comma */
    write_usage(server, &json, first, count_tokens(first));
    json_out_key(&json, "metadata");
    json_out_object_begin(&json);
    json_out_key_text(&json, "weight_version", "default");
    json_out_object_end(&json);
    json_out_object_end(&json);
    assert(json_out_is_whole(&json));
    memcpy(out, "],", 2);
    return 1 + json.length;
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

static bool is_finished(const struct exchange *first)
{
    for (const struct exchange *e = first; e != NULL; e = e->next_choice) {
        if (look_at(e).finish == FINISH_NONE) {
            return false;
        }
    }
    return true;
}

static uint64_t measure_whole(struct http_server *server, const struct exchange *first)
{
    uint64_t bytes = write_opening(&first->request, server->scratch) + write_ending(server, first, server->scratch);

    for (const struct exchange *e = first; e != NULL; e = e->next_choice) {
        const struct look look = look_at(e);
        bytes += write_before(&e->request, server->scratch) + write_behind(&e->request, &look, server->scratch) +
                 measure_text(server, e->written.text, &e->request, &look);
    }
    return bytes;
}

static void begin_whole(struct http_server *server, struct chat_answer *answer, const struct exchange *first,
                        struct outbox *outbox)
{
    const struct reply_head head = {
        .status = 200,
        .content_type = "application/json",
        .framing = REPLY_LENGTH,
        .content_length = measure_whole(server, first),
        .is_keep_alive = !answer->is_closing,
        .is_http_1_0 = answer->is_http_1_0,
    };

    reply_add_head(outbox, &head);
    outbox_wrote(outbox, write_opening(&first->request, outbox_place(outbox)));
    metrics_count_status(&server->metrics, 200);
    answer->phase = CHAT_CHOICES;
}

/* Goes on with one choice. False: there is no room for more of it. */
static bool fill_whole_choice(struct http_server *server, struct exchange *choice, struct outbox *outbox)
{
    const struct request *r = &choice->request;
    const struct look look = look_at(choice);

    if (choice->written.phase == CHOICE_ROLE && outbox_room(outbox) >= ENVELOPE_BYTES_MAX) {
        outbox_wrote(outbox, write_before(r, outbox_place(outbox)));
        choice->written.phase = CHOICE_CONTENT;
    }
    if (choice->written.phase == CHOICE_CONTENT && write_text(server, &choice->written.text, r, &look, outbox)) {
        choice->written.phase = CHOICE_FINISH;
    }
    if (choice->written.phase == CHOICE_FINISH && outbox_room(outbox) >= ENVELOPE_BYTES_MAX) {
        outbox_wrote(outbox, write_behind(r, &look, outbox_place(outbox)));
        choice->written.phase = CHOICE_OVER;
    }
    return choice->written.phase == CHOICE_OVER;
}

static enum chat_progress fill_whole(struct http_server *server, struct chat_answer *answer, struct exchange *first,
                                     struct outbox *outbox)
{
    if (answer->phase == CHAT_HEAD) {
        if (!is_finished(first)) {
            return CHAT_WAITS;
        }
        if (outbox_room(outbox) < REPLY_HEAD_BYTES_MAX + ENVELOPE_BYTES_MAX) {
            return CHAT_WANTS_ROOM;
        }
        begin_whole(server, answer, first, outbox);
    }
    while (answer->turn != NULL) {
        if (!fill_whole_choice(server, answer->turn, outbox)) {
            return CHAT_WANTS_ROOM;
        }
        answer->turn = answer->turn->next_choice;
    }
    if (outbox_room(outbox) < ENVELOPE_BYTES_MAX) {
        return CHAT_WANTS_ROOM;
    }
    outbox_wrote(outbox, write_ending(server, first, outbox_place(outbox)));
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

static void write_choice(struct http_server *server, const struct chat_answer *answer, const struct exchange *choice,
                         const struct look *look, const struct delta *delta, struct outbox *outbox)
{
    const struct request *r = &choice->request;
    struct json_out json;

    begin_chunk(answer, r, outbox, &json);
    json_out_object_begin(&json);
    json_out_key_i64(&json, "index", r->choice);
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
        write_usage(server, &json, choice->first_choice, look->tokens);
    }
    json_out_object_end(&json);
    sse_end(outbox, &json);
}

static void write_usage_chunk(struct http_server *server, const struct chat_answer *answer,
                              const struct exchange *first, struct outbox *outbox)
{
    struct json_out json;

    begin_chunk(answer, &first->request, outbox, &json);
    json_out_array_end(&json);
    write_usage(server, &json, first, count_tokens(first));
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
    answer->phase = CHAT_CHOICES;
}

/* False: all that is released is written. */
static bool write_content(struct http_server *server, const struct chat_answer *answer, struct exchange *choice,
                          const struct look *look, struct outbox *outbox)
{
    char piece[CONTENT_BYTES_MAX];
    size_t length = take_text(server, &choice->written.text, &choice->request, look, piece, sizeof piece);

    if (length > 0) {
        write_choice(server, answer, choice, look, &(struct delta){.content = piece, .content_bytes = length}, outbox);
    }
    return length > 0;
}

/* The next event of one choice. False: there is none to be written now. */
static bool fill_choice(struct http_server *server, struct chat_answer *answer, struct exchange *choice,
                        struct outbox *outbox)
{
    const struct request *r = &choice->request;
    const struct look look = look_at(choice);

    switch (choice->written.phase) {
    case CHOICE_ROLE:
        if (look.tokens == 0 && look.finish == FINISH_NONE) {
            return false;
        }
        write_choice(server, answer, choice, &look, &(struct delta){.role = "assistant", .content = ""}, outbox);
        choice->written.phase = CHOICE_CONTENT;
        return true;
    case CHOICE_CONTENT:
        if (write_content(server, answer, choice, &look, outbox)) {
            return true;
        }
        if (look.finish == FINISH_NONE) {
            return false;
        }
        choice->written.phase = CHOICE_FINISH;
        return true;
    case CHOICE_FINISH:
        if (look.is_done && r->err != ERR_OK && r->err != ERR_CLIENT_GONE) {
            write_error_event(server, answer, r->err, r->err_param, r->err_detail, outbox);
            answer->phase = CHAT_LAST;
        } else {
            write_choice(server, answer, choice, &look, &(struct delta){.finish = look.finish}, outbox);
        }
        choice->written.phase = CHOICE_OVER;
        return true;
    case CHOICE_OVER:
        break;
    }
    return false;
}

/* One event of the choice whose turn it is, or of the next one that has any. */
static bool fill_choices(struct http_server *server, struct chat_answer *answer, struct exchange *first,
                         struct outbox *outbox)
{
    struct exchange *choice = answer->turn;
    bool is_over = true;

    for (uint32_t i = 0; i < first->request.choice_count; i++) {
        bool has_written = fill_choice(server, answer, choice, outbox);
        is_over = is_over && choice->written.phase == CHOICE_OVER;
        choice = choice->next_choice != NULL ? choice->next_choice : first;
        if (has_written) {
            answer->turn = choice;
            return true;
        }
    }
    if (is_over) {
        answer->phase = first->request.wants_usage ? CHAT_USAGE : CHAT_LAST;
    }
    return is_over;
}

/* One event of a stream; the outbox has room. False: there is none to be written now. */
static bool fill_event(struct http_server *server, struct chat_answer *answer, struct exchange *first,
                       struct outbox *outbox)
{
    switch (answer->phase) {
    case CHAT_HEAD:
        begin_stream(server, answer, outbox);
        break;
    case CHAT_CHOICES:
        return fill_choices(server, answer, first, outbox);
    case CHAT_USAGE:
        write_usage_chunk(server, answer, first, outbox);
        answer->phase = CHAT_LAST;
        break;
    case CHAT_LAST:
        break;
    }
    return true;
}

static enum chat_progress fill_stream(struct http_server *server, struct chat_answer *answer, struct exchange *first,
                                      struct outbox *outbox)
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
        if (!fill_event(server, answer, first, outbox)) {
            return CHAT_WAITS;
        }
    }
}

/* True once a choice has a token, or is over. */
static bool has_begun(const struct exchange *first)
{
    for (const struct exchange *e = first; e != NULL; e = e->next_choice) {
        const struct look look = look_at(e);
        if (look.is_done || look.finish != FINISH_NONE || look.tokens > 0) {
            return true;
        }
    }
    return false;
}

enum chat_progress chat_answer_fill(struct http_server *server, struct chat_answer *answer, struct exchange *exchange,
                                    struct outbox *outbox)
{
    const struct request *refused;

    assert(exchange->first_choice == exchange);
    if (answer->phase == CHAT_HEAD) {
        if (!has_begun(exchange)) {
            return CHAT_WAITS;
        }
        enum err err = refusal_of(exchange, &refused);
        if (err != ERR_OK) {
            return write_refusal(server, answer, err == ERR_SHUTTING_DOWN ? NULL : refused, err, outbox);
        }
        answer->is_closing = answer->is_closing || !http_server_is_open(server);
        answer->is_stream = exchange->request.is_stream;
        answer->turn = exchange;
        for (struct exchange *e = exchange; e != NULL; e = e->next_choice) {
            detok_open(&e->written.text, e->request.skip_special_tokens);
        }
    }
    return answer->is_stream ? fill_stream(server, answer, exchange, outbox)
                             : fill_whole(server, answer, exchange, outbox);
}

void chat_answer_abandon(struct http_server *server, struct chat_answer *answer, struct outbox *outbox)
{
    if (answer->phase == CHAT_HEAD && outbox_room(outbox) >= REPLY_HEAD_BYTES_MAX + REPLY_ERROR_BYTES_MAX) {
        answer->is_closing = true;
        (void)write_refusal(server, answer, NULL, ERR_SHUTTING_DOWN, outbox);
    } else if (answer->phase != CHAT_HEAD && answer->is_stream &&
               outbox_room(outbox) >= SSE_ROOM_BYTES + DONE_ROOM_BYTES) {
        write_error_event(server, answer, ERR_SHUTTING_DOWN, "", "", outbox);
        sse_done(outbox, answer->is_chunked);
    }
}
