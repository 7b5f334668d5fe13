/* test_sniff: headers of every kind are read; what is cut, empty, too large or of another format is refused by name. */
#include "engine/image/sniff.h"

#include "config.h"
#include "tests/image/picture_case.h"

#include <math.h>
#include <zlib.h>

static enum err sniff(const void *bytes, size_t count, struct image_header *header, const char **reason)
{
    const unsigned char *file = picture_case_place(picture_case_room(), bytes, count);

    *reason = NULL;
    return sniff_read_header(file, count, PICTURE_PIXELS_MAX, header, reason);
}

static void put_u32(unsigned char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        bytes[i] = (unsigned char)(value >> (24 - 8 * i));
    }
}

/* Signature and IHDR, 33 bytes. */
static size_t make_png_head(unsigned char *file, uint32_t width, uint32_t height, int depth, int colour, int interlace)
{
    memcpy(file, "\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR", 16);
    put_u32(file + 16, width);
    put_u32(file + 20, height);
    file[24] = (unsigned char)depth;
    file[25] = (unsigned char)colour;
    file[26] = file[27] = 0;
    file[28] = (unsigned char)interlace;
    put_u32(file + 29, (uint32_t)crc32(0, file + 12, 17));
    return 33;
}

/* SOI, one SOF, one SOS. */
static size_t make_jpeg_head(unsigned char *file, unsigned sof, unsigned precision, uint32_t width, uint32_t height,
                             unsigned components, unsigned sampling)
{
    size_t at = 0;

    memcpy(file, "\xFF\xD8\xFF", 3);
    file[3] = (unsigned char)sof;
    file[4] = 0;
    file[5] = (unsigned char)(8 + 3 * components);
    file[6] = (unsigned char)precision;
    file[7] = (unsigned char)(height >> 8);
    file[8] = (unsigned char)height;
    file[9] = (unsigned char)(width >> 8);
    file[10] = (unsigned char)width;
    file[11] = (unsigned char)components;
    for (at = 12; at < 12 + 3 * (size_t)components; at += 3) {
        file[at] = (unsigned char)at;
        file[at + 1] = (unsigned char)sampling;
        file[at + 2] = 0;
    }
    memcpy(file + at, "\xFF\xDA\x00\x08\x01\x01\x00\x00\x3F\x00", 10);
    return at + 10;
}

static void sizes_and_orientations_are_read(void)
{
    static const struct {
        const char *path;
        struct image_header expected;
    } rows[] = {
        {"tests/data/fixtures/images/exif6_160x240.jpg", {IMAGE_JPEG, 240, 160, 160, 240, 6, 3, 8, false, false, 0}},
        {"tests/data/fixtures/images/progressive150x200.jpg",
         {IMAGE_JPEG, 150, 200, 150, 200, 1, 3, 8, true, false, 99840}},
        {"tests/data/images/pngsuite/basi6a16.png", {IMAGE_PNG, 32, 32, 32, 32, 1, 4, 16, false, true, 0}},
        {"tests/data/images/pngsuite/basn3p02.png", {IMAGE_PNG, 32, 32, 32, 32, 1, 1, 2, false, false, 0}},
        {"tests/data/images/png-bugfixes/F-exif-chunk-early.png",
         {IMAGE_PNG, 400, 400, 400, 400, 6, 3, 8, false, false, 0}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct image_header header;
        const char *reason;
        size_t bytes;
        const unsigned char *file = picture_case_read(picture_case_room(), rows[i].path, &bytes);
        CU_ASSERT_EQUAL_FATAL(sniff_read_header(file, bytes, PICTURE_PIXELS_MAX, &header, &reason), ERR_OK);
        const struct image_header *expected = &rows[i].expected;
        CU_ASSERT_EQUAL(header.format, expected->format);
        CU_ASSERT_EQUAL(header.stored_width, expected->stored_width);
        CU_ASSERT_EQUAL(header.stored_height, expected->stored_height);
        CU_ASSERT_EQUAL(header.width, expected->width);
        CU_ASSERT_EQUAL(header.height, expected->height);
        CU_ASSERT_EQUAL(header.orientation, expected->orientation);
        CU_ASSERT_EQUAL(header.channels, expected->channels);
        CU_ASSERT_EQUAL(header.bit_depth, expected->bit_depth);
        CU_ASSERT_EQUAL(header.is_progressive, expected->is_progressive);
        CU_ASSERT_EQUAL(header.is_interlaced, expected->is_interlaced);
        CU_ASSERT_EQUAL(header.coefficient_bytes, expected->coefficient_bytes);
    }
}

static void every_prefix_of_a_header_is_truncated(void)
{
    unsigned char file[64];
    struct image_header header;
    const char *reason;
    size_t png_bytes = make_png_head(file, 8, 8, 8, 2, 0);

    for (size_t bytes = 8; bytes < png_bytes; bytes++) {
        CU_ASSERT_EQUAL(sniff(file, bytes, &header, &reason), ERR_BAD_IMAGE);
        CU_ASSERT_STRING_EQUAL(reason, "the file ends early");
    }
    CU_ASSERT_EQUAL(sniff(file, png_bytes, &header, &reason), ERR_OK);
    size_t jpeg_bytes = make_jpeg_head(file, 0xC0, 8, 8, 8, 3, 0x11);
    for (size_t bytes = 2; bytes < jpeg_bytes; bytes++) {
        CU_ASSERT_EQUAL(sniff(file, bytes, &header, &reason), ERR_BAD_IMAGE);
        CU_ASSERT_STRING_EQUAL(reason, "the file ends early");
    }
    CU_ASSERT_EQUAL(sniff(file, jpeg_bytes, &header, &reason), ERR_OK);
}

static void sizes_out_of_range_are_refused_by_name(void)
{
    static const struct {
        uint32_t width, height;
        const char *reason;
    } rows[] = {
        {0, 8, "zero width"},
        {8, 0, "zero height"},
        {2049, 2048, "width x height over --max-source-pixels"},
        {65535, 65535, "width x height over --max-source-pixels"},
        {65536, 1, "an edge is longer than 65535 pixels"},
        {1, 0xFFFFFFFF, "an edge is longer than 65535 pixels"},
        {0x80000000, 0x80000000, "an edge is longer than 65535 pixels"},
    };
    unsigned char file[64];
    struct image_header header;
    const char *reason;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bytes = make_png_head(file, rows[i].width, rows[i].height, 8, 2, 0);
        CU_ASSERT_EQUAL(sniff(file, bytes, &header, &reason), ERR_BAD_IMAGE);
        CU_ASSERT_STRING_EQUAL(reason, rows[i].reason);
        if (rows[i].width < 65536 && rows[i].height < 65536) {
            bytes = make_jpeg_head(file, 0xC2, 8, rows[i].width, rows[i].height, 3, 0x11);
            CU_ASSERT_EQUAL(sniff(file, bytes, &header, &reason), ERR_BAD_IMAGE);
            CU_ASSERT_STRING_EQUAL(reason, rows[i].reason);
        }
    }
    CU_ASSERT_EQUAL(sniff(file, make_png_head(file, 2048, 2048, 8, 2, 0), &header, &reason), ERR_OK);
}

static void only_the_depths_and_colours_of_the_standard_pass(void)
{
    unsigned char file[64];
    struct image_header header;
    const char *reason;
    int passed = 0;

    for (int colour = 0; colour < 256; colour++) {
        for (int depth = 0; depth < 256; depth++) {
            passed += sniff(file, make_png_head(file, 8, 8, depth, colour, 0), &header, &reason) == ERR_OK;
        }
    }
    CU_ASSERT_EQUAL(passed, 15);
    CU_ASSERT_EQUAL(sniff(file, make_png_head(file, 8, 8, 8, 2, 2), &header, &reason), ERR_BAD_IMAGE);
}

static void codings_that_are_not_decoded_are_refused(void)
{
    unsigned char file[1024];
    struct image_header header;
    const char *reason;

    for (unsigned sof = 0xC0; sof <= 0xCF; sof++) {
        bool is_decoded = sof <= 0xC2 || sof == 0xC9 || sof == 0xCA;
        if (sof != 0xC4 && sof != 0xC8 && sof != 0xCC) {
            size_t bytes = make_jpeg_head(file, sof, 8, 8, 8, 3, 0x11);
            CU_ASSERT_EQUAL(sniff(file, bytes, &header, &reason), is_decoded ? ERR_OK : ERR_BAD_IMAGE);
        }
    }
    for (unsigned components = 0; components < 80; components++) {
        size_t bytes = make_jpeg_head(file, 0xC0, 8, 8, 8, components, 0x11);
        CU_ASSERT_EQUAL(sniff(file, bytes, &header, &reason),
                        components == 1 || components == 3 || components == 4 ? ERR_OK : ERR_BAD_IMAGE);
    }
    for (unsigned sampling = 0; sampling < 256; sampling++) {
        unsigned h = sampling >> 4, v = sampling & 15;
        size_t bytes = make_jpeg_head(file, 0xC0, 8, 8, 8, 3, sampling);
        CU_ASSERT_EQUAL(sniff(file, bytes, &header, &reason),
                        h >= 1 && h <= 4 && v >= 1 && v <= 4 ? ERR_OK : ERR_BAD_IMAGE);
    }
    CU_ASSERT_EQUAL(sniff(file, make_jpeg_head(file, 0xC0, 12, 8, 8, 3, 0x11), &header, &reason), ERR_BAD_IMAGE);
    CU_ASSERT_STRING_EQUAL(reason, "JPEG samples of other than 8 bits are not supported");
}

static void other_formats_are_named(void)
{
    static const struct {
        const char *path, *reason;
    } rows[] = {
        {"tests/data/images/pillow/hopper.gif", "not a JPEG or PNG (GIF found)"},
        {"tests/data/images/pillow/zero_width.gif", "not a JPEG or PNG (GIF found)"},
        {"tests/data/images/pillow/hopper.webp", "not a JPEG or PNG (WebP found)"},
        {"tests/data/images/pillow/hopper.bmp", "not a JPEG or PNG (BMP found)"},
        {"tests/data/images/libjpeg-turbo/LICENSE.txt", "not a JPEG or PNG"},
    };
    struct image_header header;
    const char *reason;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bytes;
        const unsigned char *file = picture_case_read(picture_case_room(), rows[i].path, &bytes);
        CU_ASSERT_EQUAL(sniff_read_header(file, bytes, PICTURE_PIXELS_MAX, &header, &reason), ERR_BAD_IMAGE);
        CU_ASSERT_STRING_EQUAL(reason, rows[i].reason);
    }
    CU_ASSERT_EQUAL(sniff("", 0, &header, &reason), ERR_BAD_IMAGE);
    CU_ASSERT_STRING_EQUAL(reason, "empty");
}

static void every_picture_of_three_components_within_the_limits_has_its_coefficients_planned(void)
{
    static const uint64_t limits[] = {1, 1000, 65536, 4194304, 67108864, 4000000000};
    uint32_t state = 7;

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint64_t plan = sniff_coefficient_bytes_max(limits[i]);
        for (int n = 0; n < 20000; n++) {
            state = state * 1664525 + 1013904223;
            double ratio = n % 2 == 0 ? 200 : 1 + (state >> 8) % 200;
            uint64_t shorter = (uint64_t)sqrt((double)limits[i] / ratio);
            shorter = shorter > 0 ? shorter - (n % 7 == 0 && shorter > 1) : 1;
            uint64_t longer = limits[i] / shorter;
            longer = longer > 200 * shorter ? 200 * shorter : longer;
            if (longer <= IMAGE_EDGE_MAX && shorter <= IMAGE_EDGE_MAX) {
                uint64_t padded = (longer + 31) / 32 * 32 * ((shorter + 31) / 32 * 32);
                CU_ASSERT(padded * 3 * 2 <= plan);
                CU_ASSERT(longer <= sniff_edge_max(limits[i]));
            }
        }
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(sizes_and_orientations_are_read),
        CASE(every_prefix_of_a_header_is_truncated),
        CASE(sizes_out_of_range_are_refused_by_name),
        CASE(only_the_depths_and_colours_of_the_standard_pass),
        CASE(codings_that_are_not_decoded_are_refused),
        CASE(other_formats_are_named),
        CASE(every_picture_of_three_components_within_the_limits_has_its_coefficients_planned),
        {NULL, NULL}};

    return harness_run(argc, argv, "sniff", cases, NULL);
}
