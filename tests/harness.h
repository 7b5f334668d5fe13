/* harness: runs the cases of one test file through CUnit and closes with `NAME: N passed, N failed`. */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <CUnit/CUnit.h>
#include <stddef.h>

struct harness_case {
    const char *property; /* what holds, as the function's name says it */
    void (*run)(void);
};

#define CASE(function) {#function, function}

/* Runs `cases` (ended by {NULL, NULL}); `balanced`, if given, runs after each case and must return 0 (pools are home).
 * Returns main's exit status: 0 if all passed. argv[1], if given, selects cases whose name contains it. */
int harness_run(int argc, char **argv, const char *suite, const struct harness_case *cases, int (*balanced)(void));

/* True if `misuse` aborts; it is tried in a child process. */
int harness_aborts(void (*misuse)(void));

/* Reads a whole file into `bytes` (capacity `capacity`); returns its length, or -1. */
long harness_read(const char *path, void *bytes, size_t capacity);

/* Memory for a test: mapped, zeroed, with an unreadable page behind its end (so overruns fault). Never given back. */
void *harness_memory(size_t bytes);

#endif
