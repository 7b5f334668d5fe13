/* request: opening a record, refusing it, finding it by index. */
#include "engine/request.h"

#include "pools/pools.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct request *request_at(uint32_t index)
{
    assert(index < pools_capacity(POOL_REQUEST));
    return (struct request *)((unsigned char *)pools_base(POOL_REQUEST) + index * pools_stride_bytes(POOL_REQUEST));
}

enum err request_refuse(struct request *request, enum err err, const char *param, const char *format, ...)
{
    va_list arguments;

    assert(err != ERR_OK);
    assert(param != NULL && format != NULL);
    if (request->err != ERR_OK) {
        return request->err;
    }
    request->err = err;
    (void)snprintf(request->err_param, sizeof request->err_param, "%s", param);
    va_start(arguments, format);
    (void)vsnprintf(request->err_detail, sizeof request->err_detail, format, arguments);
    va_end(arguments);
    return err;
}

void request_open(struct request *request, uint32_t index, uint64_t number, uint64_t now_us, uint64_t unix_s)
{
    assert(request != NULL);
    memset(request, 0, sizeof *request);
    request->index = index;
    request->number = number;
    request->arrived_us = now_us;
    request->created_s = unix_s;
    request->engine_slot = UINT32_MAX;
    request->queue_next = UINT32_MAX;
    request->matched_stop_id = -1;
    request->matched_stop_string = -1;
    request->group = number;
    request->choice_count = 1;
}

void request_open_choice(struct request *request, uint32_t index, uint64_t number, uint32_t choice,
                         const struct request *first, int32_t *tokens)
{
    assert(first->choice == 0 && choice > 0 && choice < first->choice_count);
    assert(first->prompt_tokens > 0 && first->err == ERR_OK);
    memcpy(request, first, sizeof *request); /* nobody else looks at either: nothing of an answer is there yet */
    atomic_store_explicit(&request->stage, REQUEST_READING, memory_order_relaxed);
    request->index = index;
    request->number = number;
    request->choice = choice;
    request->body = NULL;
    request->body_bytes = 0;
    request->tokens = tokens;
    memcpy(tokens, first->tokens, first->prompt_tokens * sizeof tokens[0]);
    assert(request->engine_slot == UINT32_MAX && request->queue_next == UINT32_MAX);
}
