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

/* 24 hex digits that differ for every request of every run: two rounds of a bijection over its number and time. */
static void write_id(struct request *request)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t words[2] = {request->number * 0x9e3779b97f4a7c15u ^ request->created_s << 20,
                         request->arrived_us * 0xbf58476d1ce4e5b9u ^ request->number << 32};
    char *out = request->id;

    for (int i = 0; i < 2; i++) {
        words[i] = (words[i] ^ (words[i] >> 30)) * 0xbf58476d1ce4e5b9u;
        words[i] = (words[i] ^ (words[i] >> 27)) * 0x94d049bb133111ebu;
        words[i] ^= words[i] >> 31;
    }
    memcpy(out, "chatcmpl-", 9);
    out += 9;
    for (int i = 0; i < 24; i++) {
        *out++ = digits[words[i / 12] >> (4 * (i % 12)) & 15];
    }
    *out = '\0';
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
    write_id(request);
}
