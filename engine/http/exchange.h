/* exchange: a REQUEST as the connection thread holds it: with its TOKENS, its BODY, and the connection that waits.
 *
 * A request for n choices is a chain of n exchanges, of which the first is the one that the connection knows: it alone
 * holds the BODY. The others are taken, all or none, once the first is parsed; all are given back together.
 */
#ifndef ENGINE_HTTP_EXCHANGE_H
#define ENGINE_HTTP_EXCHANGE_H

#include "engine/engine.h"
#include "engine/http/chat_answer.h"
#include "engine/http/metrics.h"
#include "pools/pools.h"

struct conn;

/* One element of the pool REQUEST. */
struct exchange {
    struct request request; /* first: the engine finds its record at the element's address */

    /* The connection thread's own. */
    uint64_t mark; /* EXCHANGE_MARK while open: a late notice may name an element that went back */
    slab_handle request_handle, tokens_handle, body_handle;
    enum pool body_pool; /* POOL_COUNT: no body held */
    struct conn *conn;   /* NULL: the client left or has its answer; only DONE is awaited */
    struct exchange *next, *previous;
    struct exchange *first_choice, *next_choice; /* the chain; of one alone it is the first */
    struct chat_choice written;                  /* how far its answer is */
    uint32_t seen_tokens; /* answer tokens that the histograms know */
    uint64_t seen_us;     /* and when the last of them was seen */
    bool is_submitted;
    bool is_cut; /* by the end of the shutdown grace */
};

/* All open exchanges. */
struct exchange_book {
    struct engine *engine;
    struct metrics *metrics;
    struct exchange *first;
    uint32_t open_count, open_max; /* all that may run or wait: the pool has one more, for /health_generate */
    uint64_t next_number;
    uint64_t id_seed;         /* of this process: ids of two runs differ */
    bool has_large_come_free; /* somebody may wait for it; whoever serves them clears it */
};

/* Bytes of one element of the pool REQUEST, for the plan. */
uint64_t exchange_bytes(void);

void exchange_book_open(struct exchange_book *book, struct engine *engine, struct metrics *metrics, uint32_t open_max);

/* Takes REQUEST, TOKENS and, for a body of at most a small slot (`body_bytes`; 0 for one of unknown length),
 * BODY_SMALL: all or nothing. ERR_QUEUE_FULL when one is missing. A larger body is left to exchange_take_large. */
enum err exchange_open(struct exchange_book *book, struct conn *conn, uint64_t body_bytes,
                       struct exchange **exchange) ERR_CHECKED;

/* Takes a BODY_LARGE; what already lies in a small slot moves over (`held_bytes`). False: none is free. */
bool exchange_take_large(struct exchange *exchange, size_t held_bytes);

/* Where the body goes, and how much fits. 0 bytes: no slot is held. */
unsigned char *exchange_body(const struct exchange *exchange, size_t *room);

/* The body is complete: hands the request to the workers. */
void exchange_submit(struct exchange_book *book, struct exchange *exchange, size_t body_bytes);

/* The following act on all choices of the request, whichever of them is given. */

/* The connection has no more interest. `is_answered`: the answer was written whole; otherwise the request is cancelled.
 * What is held goes back now, or when the engine says DONE. */
void exchange_leave(struct exchange_book *book, struct exchange *exchange, bool is_answered);

/* Stops generating this choice; the connection stays and will be told what there is. */
void exchange_cut(struct exchange_book *book, struct exchange *exchange);

/* Looks at what the workers and the engine changed: makes the choices of a request that is parsed, gives a BODY back
 * that nobody reads any more, cancels the others when one was refused, feeds the histograms, and gives everything back
 * if nobody waits and all are DONE; then the exchange is gone and false is returned. */
bool exchange_observe(struct exchange_book *book, struct exchange *exchange);

/* The open exchange of a notice; NULL when the element is not held by this thread (any more). */
struct exchange *exchange_at(uint32_t request_index);

#endif
