/* config_text: values by path, the overlay first; a wrong type is refused by file and key, an absent value is not. */
#include "engine/model/config_text.h"

#include "tests/model/model_copy.h"

static const char text[] =
    "{\"a\": 1, \"b\": {\"c\": 2.5, \"d\": [7, 15], \"s\": \"silu\"}, \"n\": null, \"t\": true, "
    "\"text_config\": {\"a\": 11, \"only\": 12}, \"a2\": 4294967296, \"twice\": 1, \"twice\": 2}";
static const char over[] = "{\"b\": {\"d\": [9]}, \"t\": false, \"flat\": 5, \"text_config\": {\"a\": 21}}";

static struct config_text open_config(bool has_over)
{
    struct config_text config = {
        .file = "config.json",
        .over_name = "--override",
        .text = {text, sizeof text - 1},
        .over = {over, has_over ? sizeof over - 1 : 0},
    };
    config_text_open(&config);
    return config;
}

static void values_are_found_by_path(void)
{
    struct config_text config = open_config(false);
    struct json_span span;
    uint32_t number = 0;
    double real = 0;
    bool is_on = false;
    CU_ASSERT(config_u32(&config, "a", &number) && number == 1);
    CU_ASSERT(config_f64(&config, "b.c", &real) && real == 2.5);
    CU_ASSERT(config_bool(&config, "t", &is_on) && is_on);
    CU_ASSERT(config_string(&config, "b.s", &span) && config_span_is(span, "silu"));
    CU_ASSERT(config_u32(&config, "twice", &number) && number == 2); /* as Python reads it */
}

static void absent_and_null_are_alike(void)
{
    struct config_text config = open_config(false), none = {.file = "generation_config.json"};
    uint32_t number = 77;
    config_text_open(&none);
    CU_ASSERT_FALSE(config_u32(&config, "x", &number));
    CU_ASSERT_FALSE(config_u32(&config, "n", &number));
    CU_ASSERT_FALSE(config_u32(&config, "b.c.d", &number));
    CU_ASSERT_FALSE(config_u32(&none, "a", &number));
    CU_ASSERT_EQUAL(number, 77);
}

static void the_overlay_comes_first_and_merges_deeply(void)
{
    struct config_text config = open_config(true);
    int32_t list[4];
    uint32_t count = 0;
    double real = 0;
    bool is_on = true;
    CU_ASSERT(config_i32_list(&config, "b.d", list, 4, &count) && count == 1 && list[0] == 9);
    CU_ASSERT(config_f64(&config, "b.c", &real) && real == 2.5);
    CU_ASSERT(config_bool(&config, "t", &is_on) && !is_on);
}

static void text_values_are_found_in_both_forms(void)
{
    struct config_text plain = open_config(false), config = open_config(true);
    char path[CONFIG_PATH_BYTES];
    uint32_t number = 0;
    CU_ASSERT(config_u32(&plain, config_text_path(&plain, "a", path), &number) && number == 11);
    CU_ASSERT(config_u32(&config, config_text_path(&config, "a", path), &number) && number == 21);
    CU_ASSERT(config_u32(&config, config_text_path(&config, "only", path), &number) && number == 12);
    CU_ASSERT(config_u32(&config, config_text_path(&config, "flat", path), &number) && number == 5);
    CU_ASSERT_STRING_EQUAL(config_text_path(&config, "nowhere", path), "nowhere");
}

static void a_number_is_a_list_of_one(void)
{
    struct config_text config = open_config(false);
    int32_t list[2];
    double reals[2];
    uint32_t count = 0;
    CU_ASSERT(config_i32_list(&config, "a", list, 2, &count) && count == 1 && list[0] == 1);
    CU_ASSERT(config_f64_list(&config, "b.d", reals, 2, &count) && count == 2 && reals[1] == 15);
}

static void read_wrong_type(const char *folder)
{
    struct config_text config = open_config(false);
    uint32_t number;
    (void)folder;
    (void)config_u32(&config, "b.s", &number);
}

static void read_too_large(const char *folder)
{
    struct config_text config = open_config(false);
    uint32_t number;
    (void)folder;
    (void)config_u32(&config, "a2", &number);
}

static void read_long_list(const char *folder)
{
    struct config_text config = open_config(false);
    int32_t list[1];
    uint32_t count;
    (void)folder;
    (void)config_i32_list(&config, "b.d", list, 1, &count);
}

static void open_cut(const char *folder)
{
    struct config_text config = {.file = "config.json", .text = {text, sizeof text - 2}};
    (void)folder;
    config_text_open(&config);
}

static void open_bad_overlay(const char *folder)
{
    struct config_text config = {
        .file = "config.json", .over_name = "--override", .text = {text, sizeof text - 1}, .over = {"[1]", 3}};
    (void)folder;
    config_text_open(&config);
}

static void mistakes_are_refused_by_name(void)
{
    static struct model_copy copy;
    copy_try(&copy, read_wrong_type);
    CU_ASSERT(SAYS(&copy, 4, "config.json", "\"b.s\"", "silu", "whole number"));
    copy_try(&copy, read_too_large);
    CU_ASSERT(SAYS(&copy, 4, "\"a2\"", "4294967296"));
    copy_try(&copy, read_long_list);
    CU_ASSERT(SAYS(&copy, 4, "\"b.d\"", "not too long"));
    copy_try(&copy, open_cut);
    CU_ASSERT(SAYS(&copy, 4, "config.json", "byte"));
    copy_try(&copy, open_bad_overlay);
    CU_ASSERT(SAYS(&copy, 2, "--override", "not a JSON object"));
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(values_are_found_by_path),
        CASE(absent_and_null_are_alike),
        CASE(the_overlay_comes_first_and_merges_deeply),
        CASE(text_values_are_found_in_both_forms),
        CASE(a_number_is_a_list_of_one),
        CASE(mistakes_are_refused_by_name),
        {NULL, NULL},
    };
    return harness_run(argc, argv, "config_text", cases, NULL);
}
