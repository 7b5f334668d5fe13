/* start: refusing to start. Start-up only: nothing calls this after "ready". */
#ifndef ENGINE_START_H
#define ENGINE_START_H

/* Exit codes of the program. */
enum start_exit {
    START_OK = 0,
    START_BUG = 1,       /* an unexpected system failure */
    START_USAGE = 2,     /* a flag, its value, or a combination of flags */
    START_NO_MEMORY = 3, /* the plan does not fit */
    START_BAD_MODEL = 4, /* a file of the model is missing, damaged, or not of a known kind */
    START_NO_DEVICE = 5, /* the device is not there or cannot do what is asked */
    START_NO_PORT = 6    /* the port cannot be bound */
};

/* Prints "ashlar: " and the message (one line, at most LOG_LINE_BYTES_MAX) to standard error and ends the process with
 * `exit_code`. Does not return. Asserts that the seal is open. */
_Noreturn void start_refuse(enum start_exit exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Opens /dev/null for each standard stream that the caller closed: no file, pool of events or socket may get the number
 * under which lines are logged. A stream that may not grow (ulimit -f) is an error of write, not a signal. First thing
 * of all. */
void start_hold_streams(void);

/* Sees to it that the first thread's stack may grow to `bytes` (ulimit -s), or refuses. */
void start_hold_stack(unsigned long bytes);

/* Writes all of `bytes` to standard output or error; gives up silently when nobody reads. Start-up, help, the plan. */
void start_print(const char *text, unsigned long bytes);
void start_print_error(const char *text, unsigned long bytes);

/* Constant text of an errno value, "No such file or directory"; no heap. */
const char *start_errno_text(int error_number);

#endif
