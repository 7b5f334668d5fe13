/* test_grid: sizes as the published processor gives them, and bounds that hold for every picture. */
#include "engine/image/grid.h"

#include "tests/image/picture_case.h"

static int refused_rows;

static void row_is_equal(char **fields)
{
    struct image_rules rules = {.patch = (uint32_t)strtoul(fields[2], NULL, 10) / 2,
                                .merge = 2,
                                .min_pixels = strtoull(fields[3], NULL, 10),
                                .max_pixels = strtoull(fields[4], NULL, 10)};
    struct image_grid grid;
    const char *reason = NULL;
    uint32_t height = (uint32_t)strtoul(fields[0], NULL, 10), width = (uint32_t)strtoul(fields[1], NULL, 10);
    enum err err = grid_fit(width, height, &rules, &grid, &reason);

    if (strcmp(fields[5], "error") == 0) {
        CU_ASSERT_EQUAL(err, ERR_BAD_IMAGE);
        CU_ASSERT_PTR_NOT_NULL(reason);
        refused_rows++;
        return;
    }
    CU_ASSERT_EQUAL_FATAL(err, ERR_OK);
    CU_ASSERT_EQUAL(grid.height, strtoul(fields[5], NULL, 10));
    CU_ASSERT_EQUAL(grid.width, strtoul(fields[6], NULL, 10));
    CU_ASSERT_EQUAL(grid.grid_h * rules.patch, grid.height);
    CU_ASSERT_EQUAL(grid.grid_w * rules.patch, grid.width);
    CU_ASSERT_EQUAL(grid.token_count * 4, grid.grid_h * grid.grid_w);
}

static void every_row_of_the_reference_is_equal(void)
{
    /* The table's first line names its columns. */
    static char text[64 * 1024];
    long bytes = harness_read("tests/data/fixtures/preprocess/smart_resize.tsv", text + 1, sizeof text - 2);
    int rows = 0;

    CU_ASSERT_FATAL(bytes > 0);
    for (char *line = strtok(text + 1, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *fields[7] = {line};
        int count = 1;
        for (char *tab = line; count < 7 && (tab = strchr(tab, '\t')) != NULL; count++) {
            *tab++ = '\0';
            fields[count] = tab;
        }
        if (rows++ > 0) {
            fields[6] = count == 7 ? fields[6] : fields[5];
            row_is_equal(fields);
        }
    }
    CU_ASSERT_EQUAL(rows, 240);
    CU_ASSERT(refused_rows > 0);
}

static void a_ratio_of_200_passes_and_more_does_not(void)
{
    struct image_grid grid;
    const char *reason = "";

    CU_ASSERT_EQUAL(grid_fit(1000, 5, &RULES_QWEN25, &grid, &reason), ERR_OK);
    CU_ASSERT_EQUAL(grid_fit(1005, 5, &RULES_QWEN25, &grid, &reason), ERR_BAD_IMAGE);
    CU_ASSERT_STRING_EQUAL(reason, "aspect ratio above 200");
    CU_ASSERT_EQUAL(grid_fit(5, 1005, &RULES_QWEN25, &grid, &reason), ERR_BAD_IMAGE);
}

static void the_1080p_picture_has_2691_tokens(void)
{
    struct image_grid grid;
    const char *reason = "";

    CU_ASSERT_EQUAL_FATAL(grid_fit(1920, 1080, &RULES_QWEN25, &grid, &reason), ERR_OK);
    CU_ASSERT_EQUAL(grid.token_count, 2691);
    CU_ASSERT_EQUAL(grid.width, 1932);
    CU_ASSERT_EQUAL(grid.height, 1092);
}

/* grid_fit asserts grid_pixels_max for each. */
static void no_picture_exceeds_the_bound(void)
{
    static const uint64_t limits[][2] = {{3136, 12845056}, {65536, 16777216}, {1, 784}, {784, 784},    {3136, 100352},
                                         {100352, 100352}, {401408, 401409},  {1, 1},   {50000, 60000}};
    struct image_grid grid;
    const char *reason = "";
    uint32_t state = 1;

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct image_rules rules = {.patch = 14, .merge = 2, .min_pixels = limits[i][0], .max_pixels = limits[i][1]};
        uint64_t most = 0;
        for (int n = 0; n < 20000; n++) {
            state = state * 1664525 + 1013904223;
            uint32_t shorter = 1 + (state >> 8) % (n % 3 == 0 ? 40 : 700);
            state = state * 1664525 + 1013904223;
            uint32_t longer = shorter * (1 + (state >> 8) % 200);
            if (n % 5 == 0) {
                longer = shorter * 200;
            }
            bool is_tall = n % 2 == 0;
            CU_ASSERT_EQUAL(grid_fit(is_tall ? shorter : longer, is_tall ? longer : shorter, &rules, &grid, &reason),
                            ERR_OK);
            uint64_t pixels = (uint64_t)grid.width * grid.height;
            most = pixels > most ? pixels : most;
        }
        CU_ASSERT(most <= grid_pixels_max(&rules));
        CU_ASSERT_EQUAL(grid_tokens_max(&rules), grid_pixels_max(&rules) / 784);
    }
    CU_ASSERT_EQUAL(grid_pixels_max(&RULES_QWEN25), 12845056);
    CU_ASSERT_EQUAL(grid_pixels_max(&RULES_QWEN3), 16777216);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {CASE(every_row_of_the_reference_is_equal),
                                                CASE(a_ratio_of_200_passes_and_more_does_not),
                                                CASE(the_1080p_picture_has_2691_tokens),
                                                CASE(no_picture_exceeds_the_bound),
                                                {NULL, NULL}};

    return harness_run(argc, argv, "grid", cases, NULL);
}
