/* clock: time. */
#include "engine/clock.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

static struct timespec now(clockid_t clock)
{
    struct timespec time = {0, 0};
    int failed = clock_gettime(clock, &time);

    assert(failed == 0);
    assert(time.tv_nsec >= 0);
    (void)failed;
    return time;
}

uint64_t clock_now_us(void)
{
    struct timespec time = now(CLOCK_MONOTONIC);

    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

uint64_t clock_now_ms(void)
{
    return clock_now_us() / 1000u;
}

int64_t clock_unix_seconds(void)
{
    return now(CLOCK_REALTIME).tv_sec;
}

size_t clock_utc_text(char *text)
{
    struct timespec time = now(CLOCK_REALTIME);
    struct tm date;

    assert(text != NULL);
    if (gmtime_r(&time.tv_sec, &date) == NULL) {
        date = (struct tm){.tm_mday = 1, .tm_year = 70}; /* a year beyond int */
    }
    int length =
        snprintf(text, CLOCK_TEXT_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", date.tm_year + 1900, date.tm_mon + 1,
                 date.tm_mday, date.tm_hour, date.tm_min, date.tm_sec, (int)(time.tv_nsec / 1000000));
    assert(length > 0);
    return length < CLOCK_TEXT_BYTES ? (size_t)length : CLOCK_TEXT_BYTES - 1;
}
