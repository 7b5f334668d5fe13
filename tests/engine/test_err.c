/* test_err: every refusal is a complete row that clients understand. */
#include "engine/err.h"
#include "tests/harness.h"

#include <string.h>

static void every_row_is_complete(void)
{
    for (int i = 0; i < ERR_COUNT; i++) {
        const struct err_row *row = err_row((enum err)i);

        CU_ASSERT(row->name != NULL && row->name[0] != '\0');
        CU_ASSERT(row->text != NULL && row->text[0] != '\0');
        CU_ASSERT(row->type != NULL);
        CU_ASSERT(i == ERR_OK ? row->status == 200 : row->status >= 400 && row->status <= 505);
    }
}

static void what_may_be_tried_again_says_so(void)
{
    CU_ASSERT(err_row(ERR_QUEUE_FULL)->is_retryable);
    CU_ASSERT(err_row(ERR_QUEUE_FULL)->status == 503);
    CU_ASSERT(!err_row(ERR_BAD_FIELD)->is_retryable);
    for (int i = 0; i < ERR_COUNT; i++) {
        CU_ASSERT(err_row((enum err)i)->status != 503 || err_row((enum err)i)->is_retryable);
    }
}

static void names_are_the_tables(void)
{
    CU_ASSERT(strcmp(err_row(ERR_OK)->name, "OK") == 0);
    CU_ASSERT(strcmp(err_row(ERR_CONTEXT_EXCEEDED)->name, "CONTEXT_EXCEEDED") == 0);
}

static void beyond_the_table(void)
{
    (void)err_row(ERR_COUNT);
}

static void an_unknown_refusal_is_a_bug(void)
{
    CU_ASSERT(harness_aborts(beyond_the_table));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(every_row_is_complete),
        CASE(what_may_be_tried_again_says_so),
        CASE(names_are_the_tables),
        CASE(an_unknown_refusal_is_a_bug),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/err", cases, NULL);
}
