/* Properties of engine/clock.c: time does not run backwards, and its text is ISO 8601. */
#include "engine/clock.h"
#include "tests/harness.h"

#include <string.h>
#include <time.h>

static void monotonic_time_never_falls(void)
{
    uint64_t last_us = clock_now_us();

    for (int i = 0; i < 10000; i++) {
        uint64_t now_us = clock_now_us();
        CU_ASSERT_FATAL(now_us >= last_us);
        last_us = now_us;
    }
    CU_ASSERT(clock_now_ms() >= last_us / 1000);
    CU_ASSERT(clock_now_ms() <= last_us / 1000 + 10000);
}

static void wall_time_is_this_century(void)
{
    CU_ASSERT(clock_unix_seconds() > 1600000000);
    CU_ASSERT(clock_unix_seconds() - time(NULL) <= 1);
}

static void text_has_one_form(void)
{
    char text[CLOCK_TEXT_BYTES];
    size_t length = clock_utc_text(text);

    CU_ASSERT(length == strlen("2025-01-31T23:59:59.123Z"));
    CU_ASSERT(length == strlen(text));
    CU_ASSERT(text[4] == '-' && text[10] == 'T' && text[13] == ':' && text[19] == '.' && text[23] == 'Z');
    CU_ASSERT(strncmp(text, "20", 2) == 0);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(monotonic_time_never_falls),
        CASE(wall_time_is_this_century),
        CASE(text_has_one_form),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "engine/clock", cases, NULL);
}
