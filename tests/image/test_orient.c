/* test_orient: the eight orientations, against a picture of numbered pixels and against each other. */
#include "engine/image/orient.h"

#include "tests/image/picture_case.h"

/* Stored as 3 x 2:  0 1 2 / 3 4 5. What EXIF's definitions make of it, row by row. */
static const unsigned char UPRIGHT[9][6] = {
    {0},
    {0, 1, 2, 3, 4, 5}, /* 1: as it is */
    {2, 1, 0, 5, 4, 3}, /* 2: mirrored left to right */
    {5, 4, 3, 2, 1, 0}, /* 3: turned by half */
    {3, 4, 5, 0, 1, 2}, /* 4: mirrored top to bottom */
    {0, 3, 1, 4, 2, 5}, /* 5: transposed */
    {3, 0, 4, 1, 5, 2}, /* 6: turned clockwise */
    {5, 2, 4, 1, 3, 0}, /* 7: transposed along the other diagonal */
    {2, 5, 1, 4, 0, 3}, /* 8: turned counter-clockwise */
};

static void each_orientation_is_as_defined(void)
{
    unsigned char stored[18], upright[18];

    for (unsigned i = 0; i < 18; i++) {
        stored[i] = (unsigned char)(i / 3 * 10 + i % 3);
    }
    for (unsigned orientation = 1; orientation <= 8; orientation++) {
        orient_write_upright(stored, 3, 2, orientation, upright);
        for (unsigned i = 0; i < 18; i++) {
            CU_ASSERT_EQUAL(upright[i], UPRIGHT[orientation][i / 3] * 10 + i % 3);
        }
    }
}

static void the_inverse_brings_back_any_size(void)
{
    static const unsigned inverse[9] = {0, 1, 2, 3, 4, 5, 8, 7, 6};
    static const uint32_t sizes[][2] = {{1, 1}, {1, 70}, {65, 1}, {31, 33}, {64, 32}, {100, 67}};
    static unsigned char stored[100 * 100 * 3], upright[sizeof stored], back[sizeof stored];

    for (size_t i = 0; i < sizeof stored; i++) {
        stored[i] = (unsigned char)(i * 31 + (i >> 8));
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t width = sizes[i][0], height = sizes[i][1];
        for (unsigned orientation = 1; orientation <= 8; orientation++) {
            orient_write_upright(stored, width, height, orientation, upright);
            orient_write_upright(upright, orientation < 5 ? width : height, orientation < 5 ? height : width,
                                 inverse[orientation], back);
            CU_ASSERT_EQUAL(memcmp(stored, back, (size_t)width * height * 3), 0);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(each_orientation_is_as_defined), CASE(the_inverse_brings_back_any_size), {NULL, NULL}};

    return harness_run(argc, argv, "orient", cases, NULL);
}
