/* clock: time. Monotonic for durations, wall time for humans. Never fails, no heap. */
#ifndef ENGINE_CLOCK_H
#define ENGINE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t clock_now_us(void); /* monotonic */
uint64_t clock_now_ms(void); /* monotonic */

int64_t clock_unix_seconds(void); /* since 1970, UTC: `created` of an answer */

/* "2025-01-31T23:59:59.123Z" of now into `text`, which holds CLOCK_TEXT_BYTES. Returns its length. */
enum { CLOCK_TEXT_BYTES = 32 };
size_t clock_utc_text(char *text);

#endif
