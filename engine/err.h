/* err: the refusals of a request, made from engine/err_table.h. 0 (ERR_OK) is success. */
#ifndef ENGINE_ERR_H
#define ENGINE_ERR_H

#include <stdbool.h>

enum err {
#define ERR(name, status, type, retryable, text) ERR_##name,
#include "engine/err_table.h"
    ERR_COUNT
};

#define ERR_CHECKED __attribute__((warn_unused_result))

struct err_row {
    const char *name;   /* "QUEUE_FULL" */
    const char *type;   /* the API's error type */
    const char *text;   /* fixed part of the message */
    int status;         /* HTTP status */
    bool is_retryable;  /* answered with Retry-After */
};

/* The row of `err`; asserts that it is in range. Constant data. */
const struct err_row *err_row(enum err err);

#endif
