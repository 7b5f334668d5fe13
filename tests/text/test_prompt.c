/* test_prompt: ranges cover what the template wrote and nothing else. */
#include "engine/text/prompt.h"

#include "tests/harness.h"

#include <string.h>

static void ranges_join_only_where_the_template_goes_on(void)
{
    char text[64];
    struct text_range ranges[4];
    struct prompt prompt;
    prompt_open(&prompt, text, sizeof text, ranges, 4);
    prompt_template(&prompt, "<a>");
    prompt_template(&prompt, "");
    prompt_template(&prompt, "b");
    prompt_user(&prompt, "", 0); /* nothing said: the template goes on */
    prompt_template(&prompt, "c");
    prompt_user(&prompt, "user", 4);
    prompt_template(&prompt, "d");
    CU_ASSERT(prompt.length == 10 && memcmp(text, "<a>bcuserd", 10) == 0);
    CU_ASSERT(prompt.range_count == 2);
    CU_ASSERT(ranges[0].begin == 0 && ranges[0].end == 5 && ranges[1].begin == 9 && ranges[1].end == 10);
    prompt_allow_all(&prompt);
    CU_ASSERT(prompt.range_count == 1 && ranges[0].begin == 0 && ranges[0].end == 10);
    CU_ASSERT_FALSE(prompt.has_overflowed);
}

static void overflow_of_text_or_ranges_is_told(void)
{
    char text[4];
    struct text_range ranges[2];
    struct prompt prompt;
    prompt_open(&prompt, text, 4, ranges, 2);
    prompt_user(&prompt, "1234", 4);
    CU_ASSERT_FALSE(prompt.has_overflowed);
    prompt_template(&prompt, "5");
    CU_ASSERT(prompt.has_overflowed && prompt.length == 4 && prompt.range_count == 0);

    prompt_open(&prompt, text, 4, ranges, 1);
    prompt_template(&prompt, "1");
    prompt_user(&prompt, "2", 1);
    CU_ASSERT_FALSE(prompt.has_overflowed);
    prompt_template(&prompt, "3");
    CU_ASSERT(prompt.has_overflowed && prompt.range_count == 1);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(ranges_join_only_where_the_template_goes_on),
        CASE(overflow_of_text_or_ranges_is_told),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "text/prompt", cases, NULL);
}
