/* intake: the workers that turn a body into a request.
 *
 * Always true: a request is touched by one worker; what it leaves behind points into the BODY only through its
 * pictures.
 */
#include "engine/intake.h"

#include "config.h"
#include "pools/pools.h"

#include <assert.h>

/* Text of a prompt that is tokenised, per token of the context: prose has 4 to 5 bytes a token, code and tables 2 to 3.
 */
enum { TEXT_BYTES_A_TOKEN = 8, TEXT_BYTES_MIN = 64 * 1024 };

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static uint64_t text_bytes_max(uint32_t context_tokens)
{
    uint64_t bytes = (uint64_t)context_tokens * TEXT_BYTES_A_TOKEN;

    return bytes < TEXT_BYTES_MIN ? TEXT_BYTES_MIN : bytes;
}

uint64_t intake_scratch_bytes(uint32_t context_tokens)
{
    return round_up(chat_parse_bytes()) + round_up(chat_scratch_bytes((size_t)text_bytes_max(context_tokens)));
}

uint64_t intake_ring_bytes(uint32_t worker_count, uint32_t request_count)
{
    return worker_count * ring_bytes(request_count, sizeof(uint32_t));
}

/* Whoever sends pictures sees what they cost. */
static enum err refuse_context(struct request *request, uint64_t prompt_tokens, uint32_t context_tokens)
{
    unsigned long long image_tokens = 0;

    for (uint32_t i = 0; i < request->picture_count; i++) {
        image_tokens += request->pictures[i].token_count;
    }
    if (image_tokens == 0) {
        return request_refuse(request, ERR_CONTEXT_EXCEEDED, "messages", "%llu tokens, and the context is %u tokens",
                              (unsigned long long)prompt_tokens, context_tokens);
    }
    return request_refuse(request, ERR_CONTEXT_EXCEEDED, "messages",
                          "%llu tokens (%llu of images, %llu of text), and the context is %u tokens",
                          (unsigned long long)prompt_tokens, image_tokens, prompt_tokens - image_tokens,
                          context_tokens);
}

/* The ids, one pad for each picture. */
static enum err encode(struct intake_worker *worker, struct request *request, size_t *count)
{
    const struct intake_rules *rules = &worker->intake->rules;
    struct chat_fault fault = {0};
    enum err err = chat_encode(rules->chat_template, &worker->parse->chat, rules->tokenizer, request->tokens,
                               rules->context_tokens, worker->scratch, (size_t)worker->scratch_bytes, count, &fault);

    switch ((int)err) {
    case ERR_OK:
    case ERR_CONTEXT_EXCEEDED: /* counted on with the pictures' tokens by the caller */
        return ERR_OK;
    case ERR_TOO_DEEP:
        return request_refuse(request, ERR_CONTEXT_EXCEEDED, "messages",
                              "more than %llu bytes of text, and the context is %u tokens",
                              (unsigned long long)text_bytes_max(rules->context_tokens), rules->context_tokens);
    case ERR_BAD_FIELD:
        if (fault.message_index == worker->parse->chat.message_count) {
            return request_refuse(request, err, "tools", "tools: %s",
                                  fault.reason == NULL ? "not UTF-8" : fault.reason);
        }
        return request_refuse(request, err, "messages", "messages[%zu]: %s", fault.message_index,
                              fault.reason == NULL ? "not UTF-8" : fault.reason);
    default:
        return request_refuse(request, err, "tools", "tools and tool_calls must be JSON");
    }
}

/* Tokens of the prompt once each pad is as many as its picture has tokens. */
static uint64_t expanded_count(const struct request *request, size_t count)
{
    uint64_t expanded = count;

    assert(request->picture_count <= IMAGES_MAX);
    for (uint32_t i = 0; i < request->picture_count; i++) {
        expanded += request->pictures[i].token_count - 1;
    }
    return expanded;
}

/* In place, from the end. False if pads and pictures are not equally many. */
static bool expand_pads(struct request *request, int32_t pad, uint32_t count, uint32_t expanded)
{
    uint32_t from = count, to = expanded, picture = request->picture_count;

    while (from > 0) {
        int32_t id = request->tokens[--from];
        if (id != pad) {
            request->tokens[--to] = id;
            continue;
        }
        if (picture == 0) {
            return false;
        }
        picture--;
        for (uint32_t i = 0; i < request->pictures[picture].token_count; i++) {
            assert(to > from);
            request->tokens[--to] = pad;
        }
        request->pictures[picture].first_token = to;
    }
    return picture == 0 && to == 0;
}

static uint32_t pad_count(const struct request *request, int32_t pad, uint32_t count)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        found += request->tokens[i] == pad;
    }
    return found;
}

/* Prompt and answer must fit the context; an answer without a limit may take all that is left. */
static enum err set_limits(struct request *request, uint32_t limit_tokens, uint32_t context_tokens)
{
    uint32_t room = context_tokens - request->prompt_tokens;

    assert(request->prompt_tokens > 0 && request->prompt_tokens < context_tokens);

    if (limit_tokens > room) {
        return request_refuse(request, ERR_MAX_TOKENS_TOO_LARGE, "max_completion_tokens",
                              "%u, and the input takes %u of the context's %u tokens", limit_tokens,
                              request->prompt_tokens, context_tokens);
    }
    request->max_new_tokens = limit_tokens == 0 ? room : limit_tokens;
    return ERR_OK;
}

enum err intake_prepare(struct intake_worker *worker, struct request *request)
{
    const struct intake_rules *rules = &worker->intake->rules;
    size_t count = 0;

    assert(request->tokens != NULL && request->body != NULL);
    enum err err = chat_request_parse(worker->parse, request, &rules->chat);

    if (err != ERR_OK || (err = encode(worker, request, &count)) != ERR_OK) {
        return err;
    }
    uint64_t expanded = expanded_count(request, count);
    if (count == 0) {
        return request_refuse(request, ERR_BAD_FIELD, "messages", "the prompt is empty");
    }
    if (expanded >= rules->context_tokens) {
        return refuse_context(request, expanded, rules->context_tokens);
    }
    /* With --allow-special-tokens-in-text a client can write pads of his own. */
    if (pad_count(request, rules->image_token_id, (uint32_t)count) != request->picture_count ||
        !expand_pads(request, rules->image_token_id, (uint32_t)count, (uint32_t)expanded)) {
        return request_refuse(request, ERR_BAD_FIELD, "messages", "image pads and pictures differ in number");
    }
    request->prompt_tokens = (uint32_t)expanded;
    request->image_tokens = (uint32_t)(expanded - count) + request->picture_count;
    if (!worker->parse->has_seed) {
        request->sampling.seed = rules->seed + request->number * 0x9e3779b97f4a7c15u;
    }
    return set_limits(request, worker->parse->limit_tokens, rules->context_tokens);
}

static void work(void *argument)
{
    struct intake_worker *worker = argument;
    struct intake *intake = worker->intake;
    uint32_t index;

    for (;;) {
        uint32_t seen = wake_ticket(&worker->wake);
        if (ring_pop(&worker->ring, &index)) {
            struct request *request = request_at(index);
            if (atomic_load_explicit(&request->is_cancelled, memory_order_relaxed)) {
                (void)request_refuse(request, ERR_CLIENT_GONE, "", "the client left");
            } else if (intake_prepare(worker, request) != ERR_OK) {
                assert(request->err != ERR_OK);
            }
            intake->rules.deliver(intake->rules.ctx, request);
            atomic_fetch_sub_explicit(&worker->load, 1, memory_order_relaxed);
            continue;
        }
        if (atomic_load_explicit(&intake->is_stopping, memory_order_acquire)) {
            return;
        }
        (void)wake_wait(&worker->wake, seen, -1);
    }
}

void intake_start(struct intake *intake, const struct intake_rules *rules, uint32_t worker_count,
                  uint32_t request_count, void *rings)
{
    unsigned char *place = rings;

    assert(worker_count > 0 && worker_count <= INTAKE_WORKERS_MAX);
    assert(rules->deliver != NULL);
    intake->rules = *rules;
    intake->worker_count = worker_count;
    for (uint32_t i = 0; i < worker_count; i++) {
        struct intake_worker *worker = &intake->workers[i];
        slab_handle handle = pools_get(POOL_INTAKE_SCRATCH);
        assert(slab_is_some(handle));
        unsigned char *scratch = pools_at(POOL_INTAKE_SCRATCH, handle);
        worker->intake = intake;
        worker->parse = (struct chat_parse *)(void *)scratch;
        worker->scratch = scratch + round_up(chat_parse_bytes());
        worker->scratch_bytes = pools_element_bytes(POOL_INTAKE_SCRATCH) - round_up(chat_parse_bytes());
        ring_open(&worker->ring, place, request_count, sizeof(uint32_t));
        place += ring_bytes(request_count, sizeof(uint32_t));
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        thread_start(&intake->workers[i].thread, "intake", THREAD_LOW, work, &intake->workers[i]);
    }
}

void intake_stop(struct intake *intake)
{
    atomic_store_explicit(&intake->is_stopping, true, memory_order_release);
    for (uint32_t i = 0; i < intake->worker_count; i++) {
        wake_up(&intake->workers[i].wake);
        thread_join(&intake->workers[i].thread);
    }
}

void intake_give(struct intake *intake, const struct request *request)
{
    struct intake_worker *least = &intake->workers[0];
    uint32_t index = request->index;

    for (uint32_t i = 1; i < intake->worker_count; i++) {
        if (atomic_load_explicit(&intake->workers[i].load, memory_order_relaxed) <
            atomic_load_explicit(&least->load, memory_order_relaxed)) {
            least = &intake->workers[i];
        }
    }
    atomic_fetch_add_explicit(&least->load, 1, memory_order_relaxed);
    bool is_given = ring_push(&least->ring, &index);
    assert(is_given); /* as long as there are REQUESTs */
    (void)is_given;
    wake_up(&least->wake);
}
