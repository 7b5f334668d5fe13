/* chat_request: the JSON body of POST /v1/chat/completions becomes a request: every field with its type and range,
 * every picture's size; in place, on the thread of an intake worker.
 *
 * What the intake worker does, in this order; each step may refuse, and none decodes a pixel:
 *   1. chat_request_parse(parse, request, rules)   messages, pictures and parameters; every 400 that the body alone
 * decides
 *   2. chat_encode(..., &parse->chat, ...)         ids with one image pad for each picture (engine/text/chat.h)
 *   3. each pad becomes request->pictures[i].token_count pads; first_token and image_tokens are set
 *   4. the context: ERR_CONTEXT_EXCEEDED, ERR_MAX_TOKENS_TOO_LARGE with both numbers; max_new_tokens from
 * parse->limit_tokens
 *   5. the seed, if !parse->has_seed; is_body_free at once if there is no picture
 * `parse` points into the request's BODY until step 2 is done.
 */
#ifndef ENGINE_HTTP_CHAT_REQUEST_H
#define ENGINE_HTTP_CHAT_REQUEST_H

#include "engine/image/grid.h"
#include "engine/request.h"
#include "engine/text/chat.h"

/* What a server decides about every request. */
struct chat_rules {
    uint32_t vocab_size;             /* stop_token_ids and logit_bias are below */
    struct sampling_params defaults; /* of what a request leaves out: generation_config.json's or the API's */
    bool has_pictures;               /* the model takes pictures */
    bool allows_special_in_text;     /* --allow-special-tokens-in-text */
    bool has_tools;                  /* the chat template shows tools to the model */
    struct image_rules image;        /* valid if has_pictures */
    uint64_t max_source_pixels;      /* --max-source-pixels */
    uint32_t images_max;             /* --limit-mm-data-per-request; IMAGES_MAX without it */
    uint32_t choices_max;            /* `n`: what can run at once (--max-running-requests) */
};

/* One an intake worker; good for one request at a time. */
struct chat_parse {
    struct chat_request chat; /* for chat_encode */
    bool has_seed;            /* request->sampling.seed was given */
    uint32_t limit_tokens;    /* max_completion_tokens, else max_tokens, else 0: up to the context */

    /* The reader's own. */
    int64_t top_k, seed, max_tokens, max_completion_tokens, min_tokens, choices, top_logprobs;
    bool wants_logprobs, has_messages, refuses_tools;
    uint32_t part_count;
    struct chat_message messages[MESSAGES_MAX];
    struct chat_part parts[PARTS_MAX];
};

/* Bytes of a struct chat_parse, for the plan (INTAKE_SCRATCH). */
uint64_t chat_parse_bytes(void);

/* Reads request->body (body_bytes), which is unescaped and decoded in place. ERR_OK: request's "what was asked" fields
 * and pictures (without first_token) are set, digests included, and `parse` is filled. Otherwise the refusal is
 * recorded by request_refuse with the field's path. The body may hold anything. */
enum err chat_request_parse(struct chat_parse *parse, struct request *request,
                            const struct chat_rules *rules) ERR_CHECKED;

#endif
