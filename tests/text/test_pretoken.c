/* test_pretoken: words end where the reference's regular expression ends them. */
#include "engine/text/pretoken.h"

#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

/* Each `words` is a text with its cuts marked by |. */
static void words_end_where_the_pattern_says(void)
{
    static const char *const cases[] = {
        "Hello|,| world|!",
        "I|'m| it|'S| we|'LL| they|'re| he|'d|'ve| o|'clock",
        "'s|'t|'re|'ve|'m|'ll|'d|'r|'v|'l|'lx|'x",
        "it|'\xc5\xbf|a", /* the long s folds to s */
        "1|2|3|abc|4",
        " |1",
        "  | two|   | three|   ",
        "a|\n|b",
        "a|\n\n|b",
        "a|  \n|  | b",
        "a|\n| |\tb",
        "a| \r\n \n|  |\tb",
        "x|...\n\n|y",
        "x| ...\r\n| y",
        "\tword|\t\t| word",
        "(foo|)| (|bar",
        "\xe4\xb8\xad\xe6\x96\x87|\xef\xbc\x8c\xe5\xad\x97",
        "\xc2\xa0\xc2\xa0|\xc2\xa0x",
        "\xe3\x80\x80\xe3\x80\x80",
        "e|\xcc\x81x", /* a mark is no letter: it takes the next letter with it */
        "_name|_x|___",
        "\xf0\x9f\x98\x80\xf0\x9f\x98\x80| \xf0\x9f\x98\x80",
        "\xe2\x85\xa3|\xc2\xbd|x",
        "'",
        "a|'",
        "\r|x",
        "\r\n|x",
        "a| |1",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];
        char marked[192];
        size_t bytes = 0;
        size_t marked_bytes = 0;
        for (const char *c = cases[i]; *c != '\0'; c++) {
            if (*c != '|') {
                text[bytes++] = *c;
            }
        }
        for (size_t at = 0; at < bytes;) {
            size_t word = pretoken_bytes(text + at, bytes - at);
            CU_ASSERT_FATAL(word > 0 && word <= bytes - at);
            if (at > 0) {
                marked[marked_bytes++] = '|';
            }
            memcpy(marked + marked_bytes, text + at, word);
            marked_bytes += word;
            at += word;
        }
        marked[marked_bytes] = '\0';
        if (strcmp(marked, cases[i]) != 0) {
            (void)fprintf(stderr, "expected %s\n     got %s\n", cases[i], marked);
        }
        CU_ASSERT_STRING_EQUAL(marked, cases[i]);
    }
}

static void nothing_behind_the_end_is_read(void)
{
    static const char text[] = "ab 'l\n\xe4\xb8\xad  ";
    for (size_t bytes = 1; bytes < sizeof text; bytes++) {
        if (bytes == 7 || bytes == 8) {
            continue; /* inside a character */
        }
        char *copy = (char *)harness_memory(64) + 64 - bytes;
        memcpy(copy, text, bytes);
        for (size_t at = 0; at < bytes;) {
            at += pretoken_bytes(copy + at, bytes - at);
            CU_ASSERT(at <= bytes);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(words_end_where_the_pattern_says),
        CASE(nothing_behind_the_end_is_read),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "text/pretoken", cases, NULL);
}
