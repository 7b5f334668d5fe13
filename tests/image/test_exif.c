/* test_exif: the orientation tag is found, and nothing broken is believed. */
#include "engine/image/exif.h"

#include "tests/harness.h"

#include <string.h>

static const unsigned char LITTLE[] = {'I', 'I', 42,  0,   8, 0,    0,    0, 2, 0, 0x0F, 0x01, 2, 0, 4, 0, 0,
                                       0,   'a', 'b', 'c', 0, 0x12, 0x01, 3, 0, 1, 0,    0,    0, 6, 0, 0, 0};
static const unsigned char BIG[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 8, 0, 0};

static void both_byte_orders_are_read(void)
{
    CU_ASSERT_EQUAL(exif_read_orientation(LITTLE, sizeof LITTLE), 6);
    CU_ASSERT_EQUAL(exif_read_orientation(BIG, sizeof BIG), 8);
}

static void every_prefix_is_safe_and_gives_1_until_the_tag_is_whole(void)
{
    unsigned char *end = (unsigned char *)harness_memory(64) + 64;

    for (size_t bytes = 0; bytes <= sizeof LITTLE; bytes++) {
        unsigned char *block = end - bytes;
        memcpy(block, LITTLE, bytes);
        CU_ASSERT_EQUAL(exif_read_orientation(block, bytes), bytes == sizeof LITTLE ? 6 : 1);
    }
}

static void a_long_is_read_as_well(void)
{
    unsigned char block[sizeof LITTLE];

    memcpy(block, LITTLE, sizeof LITTLE);
    block[24] = 4;
    CU_ASSERT_EQUAL(exif_read_orientation(block, sizeof block), 6);
    block[33] = 1;
    CU_ASSERT_EQUAL(exif_read_orientation(block, sizeof block), 1);
}

static void values_out_of_range_are_1(void)
{
    for (unsigned value = 0; value < 256; value++) {
        unsigned char block[sizeof BIG];
        memcpy(block, BIG, sizeof BIG);
        block[19] = (unsigned char)value;
        CU_ASSERT_EQUAL(exif_read_orientation(block, sizeof block), value >= 1 && value <= 8 ? value : 1);
    }
}

static void a_wrong_type_magic_or_offset_is_1(void)
{
    static const struct {
        size_t at;
        unsigned char byte;
    } changes[] = {{13, 5}, {3, 43}, {1, 'I'}, {7, 200}, {4, 0xFF}, {9, 0}};

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        unsigned char block[sizeof BIG];
        memcpy(block, BIG, sizeof BIG);
        block[changes[i].at] = changes[i].byte;
        CU_ASSERT_EQUAL(exif_read_orientation(block, sizeof block), 1);
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {CASE(both_byte_orders_are_read),
                                                CASE(every_prefix_is_safe_and_gives_1_until_the_tag_is_whole),
                                                CASE(a_long_is_read_as_well),
                                                CASE(values_out_of_range_are_1),
                                                CASE(a_wrong_type_magic_or_offset_is_1),
                                                {NULL, NULL}};

    return harness_run(argc, argv, "exif", cases, NULL);
}
