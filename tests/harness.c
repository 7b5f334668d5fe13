/* harness: runs the cases of one test file through CUnit and closes with `NAME: N passed, N failed`. */
#include "tests/harness.h"

#include <CUnit/Basic.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*after_case)(void);
static int unbalanced_count;

static void check_balance(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord failure)
{
    (void)suite;
    (void)failure;
    if (after_case != NULL && after_case() != 0) {
        (void)fprintf(stderr, "not balanced after: %s\n", test->pName);
        unbalanced_count++;
    }
}

int harness_run(int argc, char **argv, const char *suite, const struct harness_case *cases, int (*balanced)(void))
{
    if (CU_initialize_registry() != CUE_SUCCESS) {
        return 2;
    }
    CU_pSuite cu_suite = CU_add_suite(suite, NULL, NULL);
    unsigned int chosen = 0;
    for (const struct harness_case *c = cases; c->run != NULL; c++) {
        if (argc > 1 && strstr(c->property, argv[1]) == NULL) {
            continue;
        }
        CU_add_test(cu_suite, c->property, c->run);
        chosen++;
    }
    after_case = balanced;
    CU_basic_set_mode(CU_BRM_SILENT);
    CU_set_test_complete_handler(check_balance);
    (void)CU_run_all_tests();

    for (CU_pFailureRecord f = CU_get_failure_list(); f != NULL; f = f->pNext) {
        (void)fprintf(stderr, "%s:%u: %s: %s\n", f->strFileName != NULL ? f->strFileName : suite, f->uiLineNumber,
                      f->pTest != NULL ? f->pTest->pName : suite, f->strCondition != NULL ? f->strCondition : "");
    }
    unsigned int failed = CU_get_number_of_tests_failed() + (unsigned int)unbalanced_count;
    failed = failed > chosen ? chosen : failed;
    (void)printf("%s: %u passed, %u failed\n", suite, chosen - failed, failed);
    CU_cleanup_registry();
    return failed == 0 && chosen > 0 ? 0 : 1;
}

int harness_aborts(void (*misuse)(void))
{
    int status = 0;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        (void)dup2(null, STDERR_FILENO);
        (void)signal(SIGABRT, SIG_DFL);
        misuse();
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

long harness_read(const char *path, void *bytes, size_t capacity)
{
    int file = open(path, O_RDONLY);
    if (file < 0) {
        return -1;
    }
    size_t length = 0;
    ssize_t got;
    while (length < capacity && (got = read(file, (char *)bytes + length, capacity - length)) > 0) {
        length += (size_t)got;
    }
    (void)close(file);
    return (long)length;
}

void *harness_memory(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t rounded = (bytes + page - 1) / page * page;
    unsigned char *base = mmap(NULL, rounded + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        perror("harness_memory");
        _exit(2);
    }
    (void)mprotect(base + rounded, page, PROT_NONE);
    return base + (rounded - bytes) / 64 * 64; /* as near to the end as 64-byte alignment allows */
}
