/* chat_answer: the answer of POST /v1/chat/completions, made from TOKENS as the engine appends to it, streamed or
 * whole. */
#ifndef ENGINE_HTTP_CHAT_ANSWER_H
#define ENGINE_HTTP_CHAT_ANSWER_H

#include "engine/http/outbox.h"
#include "engine/text/detok.h"

#include <stdbool.h>
#include <stdint.h>

struct exchange;
struct http_server;

enum chat_progress {
    CHAT_WAITS,      /* nothing more can be said until the request changes */
    CHAT_WANTS_ROOM, /* the outbox has no room for the next piece */
    CHAT_ENDED,      /* the answer is whole */
};

enum chat_phase { CHAT_HEAD, CHAT_CHOICES, CHAT_USAGE, CHAT_LAST };

struct chat_answer {
    enum chat_phase phase;
    bool is_stream, is_chunked, is_http_1_0;
    bool is_closing;       /* the end of the connection ends the answer */
    struct exchange *turn; /* the choice that is written next: whole, one after the other; streamed, in turns */
};

enum chat_choice_phase { CHOICE_ROLE, CHOICE_CONTENT, CHOICE_FINISH, CHOICE_OVER };

/* One choice of the answer; it lies in its exchange. */
struct chat_choice {
    enum chat_choice_phase phase;
    struct detok text; /* how far the text was written */
};

/* Nothing is known yet: whether it is streamed says the request, once it is parsed. */
void chat_answer_open(struct chat_answer *answer, bool is_http_1_0, bool is_closing);

/* Writes what there is to be written and fits; `exchange` is the first choice's. The first bytes come when the first
 * token or the refusal is known, so a refusal is a status of its own even when a stream was asked for. Called again
 * whenever the request changed or the outbox has room again; never waits. */
enum chat_progress chat_answer_fill(struct http_server *server, struct chat_answer *answer, struct exchange *exchange,
                                    struct outbox *outbox);

/* Ends an answer that will not come: a refusal, or an error event in a stream that has begun, if there
 * is room for it. */
void chat_answer_abandon(struct http_server *server, struct chat_answer *answer, struct outbox *outbox);

#endif
