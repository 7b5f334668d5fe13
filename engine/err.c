/* err: the refusals of a request, made from engine/err_table.h. */
#include "engine/err.h"

#include <assert.h>

static const struct err_row rows[ERR_COUNT] = {
#define ERR(row_name, row_status, row_type, retryable, row_text)                                                       \
    [ERR_##row_name] = {.name = #row_name,                                                                             \
                        .type = row_type,                                                                              \
                        .text = row_text,                                                                              \
                        .status = row_status,                                                                          \
                        .is_retryable = retryable},
#include "engine/err_table.h"
};

const struct err_row *err_row(enum err err)
{
    assert(err >= ERR_OK);
    assert(err < ERR_COUNT);
    return &rows[err];
}
