/* test_png: Pillow's pixels from every kind of PNG, white behind transparency, refusals, memory as planned. */
#include "engine/image/png.h"

#include "tests/image/picture_case.h"
#include "tests/image/picture_make.h"

#include <zlib.h>

static int png_rows;

static void check_png_row(char **fields)
{
    size_t length = strlen(fields[0]);

    if (strcmp(fields[0] + length - 4, ".png") == 0) {
        picture_case_check_decoded(fields);
        png_rows++;
    }
}

static void pixels_are_pillows(void)
{
    (void)picture_case_rows("tests/image/decoded.golden", 4, check_png_row);
    CU_ASSERT(png_rows > 200);
}

/* image-png's CRC-32 is over gray samples, or over RGB, or over RGBA: the first two are comparable. */
static void suite_checksums_of_image_png_are_ours(void)
{
    static char text[64 * 1024];
    struct picture_case *room = picture_case_room();
    long bytes = harness_read("tests/data/images/pngsuite/_results.txt", text, sizeof text - 1);
    int equal = 0;

    CU_ASSERT_FATAL(bytes > 0);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *colon = strchr(line, ':'), path[PICTURE_PATH_BYTES];
        CU_ASSERT_PTR_NOT_NULL_FATAL(colon);
        if (strncmp(line, "tests/pngsuite/", 15) != 0 || colon[2] < '0' || colon[2] > '9') {
            continue; /* other folders' files; those expected to fail, below */
        }
        struct image_header header;
        const char *reason = "";
        size_t count;
        (void)snprintf(path, sizeof path, "tests/data/images/%.*s", (int)(colon - line - 6), line + 6);
        const unsigned char *file = picture_case_read(room, path, &count);
        CU_ASSERT_EQUAL_FATAL(picture_case_decode(room, file, count, &header, &reason), ERR_OK);
        size_t pixels = (size_t)header.width * header.height;
        uLong expected = strtoul(colon + 2, NULL, 10), rgb = crc32(0, room->regions.rgb, (uInt)(pixels * 3));
        for (size_t i = 0; i < pixels; i++) {
            room->regions.rgb[i] = room->regions.rgb[i * 3];
        }
        equal += expected == rgb || expected == crc32(0, room->regions.rgb, (uInt)pixels);
    }
    CU_ASSERT_EQUAL(equal, 133); /* of 161; the 28 others have transparency */
}

static int refused;

static void check_refused(const char *path)
{
    const char *name = strrchr(path, '/') + 1;

    if (name[0] == 'x') {
        struct picture_case *room = picture_case_room();
        struct image_header header;
        const char *reason = "";
        size_t bytes;
        const unsigned char *file = picture_case_read(room, path, &bytes);
        CU_ASSERT_EQUAL(picture_case_decode(room, file, bytes, &header, &reason), ERR_BAD_IMAGE);
        CU_ASSERT(strlen(reason) > 0);
        refused++;
    }
}

static void broken_files_are_refused(void)
{
    (void)picture_case_visit("tests/data/images/pngsuite", check_refused);
    (void)picture_case_visit("tests/data/images/png-bugfixes", check_refused);
    CU_ASSERT_EQUAL(refused, 22);
}

static enum err decode_made(uint32_t width, uint32_t height, int colour, int depth, bool is_interlaced,
                            const uint16_t *key, const char **reason)
{
    struct picture_case *room = picture_case_room();
    struct image_header header;
    size_t bytes;
    unsigned char *made = picture_make_png(width, height, colour, depth, is_interlaced, key, &bytes);
    const unsigned char *file = picture_case_place(room, made, bytes);

    free(made);
    *reason = "";
    return picture_case_decode(room, file, bytes, &header, reason);
}

static void the_planned_memory_is_enough_for_the_worst_pictures(void)
{
    static const uint32_t sizes[][2] = {{2048, 2048}, {28800, 144}, {144, 28800}};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *reason;
        CU_ASSERT_EQUAL(decode_made(sizes[i][0], sizes[i][1], PNG_COLOR_TYPE_RGB_ALPHA, 16, true, NULL, &reason),
                        ERR_OK);
        CU_ASSERT_EQUAL(decode_made(sizes[i][0], sizes[i][1], PNG_COLOR_TYPE_RGB_ALPHA, 16, false, NULL, &reason),
                        ERR_OK);
        CU_ASSERT_EQUAL(decode_made(sizes[i][0], sizes[i][1], PNG_COLOR_TYPE_GRAY, 16, true, &(uint16_t){5}, &reason),
                        ERR_OK);
    }
}

static void the_transparent_16_bit_gray_is_white_and_its_neighbours_are_not(void)
{
    struct picture_case *room = picture_case_room();
    const char *reason;
    unsigned char row[64];

    CU_ASSERT_EQUAL_FATAL(decode_made(32, 2, PNG_COLOR_TYPE_GRAY, 16, false, NULL, &reason), ERR_OK);
    picture_make_row(row, sizeof row, 1);
    for (int x = 0; x < 32; x++) {
        CU_ASSERT_EQUAL(room->regions.rgb[32 * 3 + x * 3], row[2 * x]);
    }
    const uint16_t sample = (uint16_t)(row[4] << 8 | row[5]);
    CU_ASSERT_EQUAL_FATAL(decode_made(32, 2, PNG_COLOR_TYPE_GRAY, 16, false, &sample, &reason), ERR_OK);
    CU_ASSERT_EQUAL(room->regions.rgb[32 * 3 + 2 * 3], 255);
    CU_ASSERT_EQUAL(room->regions.rgb[32 * 3 + 3 * 3], row[6]);
}

static void a_set_flag_stops_it(void)
{
    static const atomic_bool is_cancelled = true;
    struct picture_case *room = picture_case_room();
    struct image_header header;
    struct jmem work;
    const char *reason;
    size_t bytes;
    const unsigned char *file = picture_case_read(room, "tests/data/images/pngsuite/basi6a16.png", &bytes);

    CU_ASSERT_EQUAL_FATAL(sniff_read_header(file, bytes, PICTURE_PIXELS_MAX, &header, &reason), ERR_OK);
    jmem_open(&work, room->regions.work, room->regions.work_bytes);
    CU_ASSERT_EQUAL(png_decode_rgb(file, bytes, &header, &work, room->regions.rgb, &is_cancelled, &reason),
                    ERR_CLIENT_GONE);
}

static void too_little_memory_is_a_refusal_wherever_it_ends(void)
{
    struct picture_case *room = picture_case_room();
    struct image_header header;
    const char *reason;
    size_t bytes;
    const unsigned char *file = picture_case_read(room, "tests/data/images/pngsuite/basi6a16.png", &bytes);
    int refusals = 0;

    CU_ASSERT_EQUAL_FATAL(sniff_read_header(file, bytes, PICTURE_PIXELS_MAX, &header, &reason), ERR_OK);
    for (size_t work_bytes = 0;; work_bytes += 256, refusals++) {
        struct jmem work;
        jmem_open(&work, room->regions.work, work_bytes);
        enum err err = png_decode_rgb(file, bytes, &header, &work, room->regions.rgb, NULL, &reason);
        if (err == ERR_OK) {
            break;
        }
        CU_ASSERT_EQUAL_FATAL(err, ERR_BAD_IMAGE);
    }
    CU_ASSERT(refusals > 20);
}

/* Flips every byte of a small file, one at a time: whatever is hit, an answer comes and the CRCs see nearly all. */
static void a_flipped_byte_never_passes_unseen_in_a_needed_chunk(void)
{
    static unsigned char file[4096];
    struct picture_case *room = picture_case_room();
    long bytes = harness_read("tests/data/images/pngsuite/basn2c08.png", file, sizeof file);
    int passed = 0;

    CU_ASSERT_FATAL(bytes > 0);
    for (long i = 0; i < bytes; i++) {
        struct image_header header;
        const char *reason = "";
        file[i] ^= 0x55;
        const unsigned char *placed = picture_case_place(room, file, (size_t)bytes);
        enum err err = picture_case_decode(room, placed, (size_t)bytes, &header, &reason);
        CU_ASSERT(err == ERR_OK || err == ERR_BAD_IMAGE);
        passed += err == ERR_OK;
        file[i] ^= 0x55;
    }
    /* Only the gAMA chunk may be wrong: its four data bytes, four of its CRC, its name. */
    CU_ASSERT(passed <= 12);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {CASE(pixels_are_pillows),
                                                CASE(suite_checksums_of_image_png_are_ours),
                                                CASE(broken_files_are_refused),
                                                CASE(the_planned_memory_is_enough_for_the_worst_pictures),
                                                CASE(the_transparent_16_bit_gray_is_white_and_its_neighbours_are_not),
                                                CASE(a_set_flag_stops_it),
                                                CASE(too_little_memory_is_a_refusal_wherever_it_ends),
                                                CASE(a_flipped_byte_never_passes_unseen_in_a_needed_chunk),
                                                {NULL, NULL}};

    return harness_run(argc, argv, "png", cases, NULL);
}
