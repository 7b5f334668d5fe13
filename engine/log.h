/* log: one line an event, `time level event key=value ...`, to standard error.
 *
 * Always true: a caller never waits for the reader of standard error. Before log_start lines are written at once; after
 * it they are copied into a LOG_LINE slot and written by the log thread; a line that finds no slot is dropped and
 * counted.
 */
#ifndef ENGINE_LOG_H
#define ENGINE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* "error", "warn" (or "warning"), "info", "debug"; false if it is none (also "critical", as errors only). */
bool log_level_parse(const char *text, enum log_level *level);
void log_set_level(enum log_level level);
bool log_is_on(enum log_level level);

/* One event; the first word of the format is its name. Any thread. Longer than LOG_LINE_BYTES_MAX: cut. Control bytes
 * are written as '?', so text of a request cannot forge a line. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/* Takes the pool LOG_LINE and starts the writing thread. Once, before the seal. */
void log_start(void);

/* Writes what is queued and ends the thread; later lines are written at once again. */
void log_stop(void);

uint64_t log_dropped_count(void);

#endif
