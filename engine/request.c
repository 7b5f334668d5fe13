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
}
