/* test_jpeg: Pillow's pixels from every kind of JPEG; clean refusals of broken ones; memory as planned. */
#include "engine/image/jpeg.h"

#include "config.h"
#include "tests/image/picture_case.h"
#include "tests/image/picture_make.h"

static int jpeg_rows;

static void check_jpeg_row(char **fields)
{
    size_t length = strlen(fields[0]);

    if (strcmp(fields[0] + length - 4, ".jpg") == 0) {
        picture_case_check_decoded(fields);
        jpeg_rows++;
    }
}

static void pixels_are_pillows(void)
{
    (void)picture_case_rows("tests/image/decoded.golden", 4, check_jpeg_row);
    CU_ASSERT(jpeg_rows > 80);
}

/* The reference pictures were made by another decoder: a few levels apart. */
static void check_reference(const char *path)
{
    static unsigned char expected[512 * 1024 * 3];
    struct picture_case *room = picture_case_room();
    struct image_header header, expected_header;
    const char *reason;
    char png_path[PICTURE_PATH_BYTES];
    size_t length = strlen(path), bytes, differing = 0;

    if (strcmp(path + length - 4, ".jpg") != 0 || strstr(path, "cmyk") != NULL || strstr(path, "ycck") != NULL) {
        return; /* four components: that decoder converts them in another way */
    }
    (void)snprintf(png_path, sizeof png_path, "%.*s.png", (int)length - 4, path);
    const unsigned char *file = picture_case_read(room, png_path, &bytes);
    CU_ASSERT_EQUAL_FATAL(picture_case_decode(room, file, bytes, &expected_header, &reason), ERR_OK);
    size_t count = (size_t)expected_header.width * expected_header.height * 3;
    CU_ASSERT_FATAL(count <= sizeof expected);
    memcpy(expected, room->regions.rgb, count);
    file = picture_case_read(room, path, &bytes);
    CU_ASSERT_EQUAL_FATAL(picture_case_decode(room, file, bytes, &header, &reason), ERR_OK);
    CU_ASSERT_EQUAL_FATAL(header.width, expected_header.width);
    CU_ASSERT_EQUAL_FATAL(header.height, expected_header.height);
    for (size_t i = 0; i < count; i++) {
        differing += abs(room->regions.rgb[i] - expected[i]) > 4;
    }
    if (differing > count / 200) {
        (void)fprintf(stderr, "%s: %zu of %zu samples differ by more than 4\n", path, differing, count);
    }
    CU_ASSERT(differing <= count / 200);
}

static void another_decoders_pixels_are_close(void)
{
    CU_ASSERT(picture_case_visit("tests/data/images/jpeg-decoder/reftest", check_reference) > 20);
    (void)picture_case_visit("tests/data/images/jpeg-decoder/reftest/mozilla", check_reference);
}

static enum err decode_made(const struct jpeg_shape *shape, const atomic_bool *is_cancelled, const char **reason)
{
    struct picture_case *room = picture_case_room();
    struct image_header header;
    struct jmem work;
    size_t bytes;
    unsigned char *made = picture_make_jpeg(shape, &bytes);
    const unsigned char *file = picture_case_place(room, made, bytes);

    free(made);
    *reason = "";
    enum err err = sniff_read_header(file, bytes, PICTURE_PIXELS_MAX, &header, reason);
    if (err == ERR_OK) {
        jmem_open(&work, room->regions.work, room->regions.work_bytes);
        err = jpeg_decode_rgb(file, bytes, &header, &work, room->regions.rgb, is_cancelled, reason);
    }
    return err;
}

/* 2048 x 2048 and 28800 x 144 are the room's most pixels, square and at the ratio of 200. */
static void the_planned_memory_is_enough_for_the_worst_pictures(void)
{
    static const struct jpeg_shape shapes[] = {
        {2048, 2048, 3, 1, 1, false, true, 1},  {2047, 2049, 3, 2, 2, true, true, 1},
        {2048, 1536, 4, 1, 1, false, true, 1},  {28800, 144, 3, 4, 4, false, true, 1},
        {144, 28800, 3, 4, 4, false, true, 1},  {28800, 144, 3, 2, 1, true, false, 0},
        {28800, 144, 4, 1, 1, false, false, 0}, {28800, 144, 1, 4, 4, false, true, 1},
    };

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const char *reason;
        enum err err = decode_made(&shapes[i], NULL, &reason);
        if (err != ERR_OK) {
            (void)fprintf(stderr, "shape %zu: %s\n", i, reason);
        }
        CU_ASSERT_EQUAL(err, ERR_OK);
    }
}

static void four_progressive_components_at_full_size_are_refused_by_their_header(void)
{
    const char *reason;

    CU_ASSERT_EQUAL(decode_made(&(struct jpeg_shape){2048, 2048, 4, 1, 1, false, true, 1}, NULL, &reason),
                    ERR_BAD_IMAGE);
    CU_ASSERT_STRING_EQUAL(reason, "the JPEG's coefficients need more memory than --max-source-pixels plans for");
}

static void scans_are_limited(void)
{
    const char *reason;

    CU_ASSERT_EQUAL(decode_made(&(struct jpeg_shape){64, 64, 3, 1, 1, false, true, 32}, NULL, &reason), ERR_OK);
    CU_ASSERT_EQUAL(decode_made(&(struct jpeg_shape){64, 64, 3, 1, 1, false, true, 33}, NULL, &reason), ERR_BAD_IMAGE);
    CU_ASSERT_STRING_EQUAL(reason, "a JPEG of more than 100 scans");
}

static void a_set_flag_stops_it(void)
{
    static const atomic_bool is_cancelled = true;
    const char *reason;

    CU_ASSERT_EQUAL(decode_made(&(struct jpeg_shape){64, 64, 3, 1, 1, false, false, 0}, &is_cancelled, &reason),
                    ERR_CLIENT_GONE);
    CU_ASSERT_EQUAL(decode_made(&(struct jpeg_shape){64, 64, 3, 1, 1, false, true, 1}, &is_cancelled, &reason),
                    ERR_CLIENT_GONE);
}

static void too_little_memory_is_a_refusal_wherever_it_ends(void)
{
    struct picture_case *room = picture_case_room();
    struct image_header header;
    const char *reason;
    size_t bytes;
    unsigned char *made = picture_make_jpeg(&(struct jpeg_shape){100, 80, 3, 2, 2, true, true, 2}, &bytes);
    const unsigned char *file = picture_case_place(room, made, bytes);
    int refusals = 0;

    free(made);
    CU_ASSERT_EQUAL_FATAL(sniff_read_header(file, bytes, PICTURE_PIXELS_MAX, &header, &reason), ERR_OK);
    for (size_t work_bytes = 0;; work_bytes += 512, refusals++) {
        struct jmem work;
        jmem_open(&work, room->regions.work, work_bytes);
        enum err err = jpeg_decode_rgb(file, bytes, &header, &work, room->regions.rgb, NULL, &reason);
        if (err == ERR_OK) {
            break;
        }
        CU_ASSERT_EQUAL_FATAL(err, ERR_BAD_IMAGE);
        CU_ASSERT_STRING_EQUAL(reason, "the JPEG needs more memory than --max-source-pixels plans for");
    }
    CU_ASSERT(refusals > 20);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(pixels_are_pillows),
        CASE(another_decoders_pixels_are_close),
        CASE(the_planned_memory_is_enough_for_the_worst_pictures),
        CASE(four_progressive_components_at_full_size_are_refused_by_their_header),
        CASE(scans_are_limited),
        CASE(a_set_flag_stops_it),
        CASE(too_little_memory_is_a_refusal_wherever_it_ends),
        {NULL, NULL}};

    return harness_run(argc, argv, "jpeg", cases, NULL);
}
