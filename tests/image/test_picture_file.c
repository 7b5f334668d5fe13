/* test_picture_file: the whole way of a picture: the reference's bytes, refusals, planned memory, no heap call. */
#include "engine/image/picture_file.h"

#include "config.h"
#include "engine/image/resize.h"
#include "tests/image/picture_case.h"
#include "tests/image/picture_make.h"

#include <math.h>

/* The program's own malloc family: counts while armed, and serves from a block that is never given back. Everything
 * that libjpeg, libpng and zlib might call ends here. Sanitizers bring their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_COUNTER 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HAS_COUNTER 0
#else
#define HAS_COUNTER 1
#endif
#else
#define HAS_COUNTER 1
#endif

static atomic_uint heap_calls;

#if HAS_COUNTER
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void __libc_free(void *memory);

void *malloc(size_t bytes)
{
    heap_calls++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    heap_calls++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    heap_calls++;
    return __libc_realloc(memory, bytes);
}

void free(void *memory)
{
    heap_calls++;
    __libc_free(memory);
}
#endif

static enum err decode(const unsigned char *file, size_t file_bytes, const struct image_rules *rules,
                       struct image_grid *grid, const char **reason)
{
    struct picture_case *room = picture_case_room();
    struct picture_source source = {.file = file, .file_bytes = file_bytes, .max_source_pixels = PICTURE_PIXELS_MAX};

    *reason = NULL;
    return picture_file_decode(&source, rules, &room->regions, room->pixels, room->pixels_bytes, grid, reason);
}

static void check_resized(char **fields)
{
    struct picture_case *room = picture_case_room();
    bool is_qwen3 = strcmp(fields[1], "16") == 0;
    const struct image_rules *rules = is_qwen3 ? &RULES_QWEN3 : &RULES_QWEN25;
    struct image_grid grid;
    const char *reason;
    char hex[65];
    size_t bytes;
    const unsigned char *file = picture_case_read(room, fields[0], &bytes);

    CU_ASSERT_EQUAL_FATAL(strtoull(fields[2], NULL, 10), rules->min_pixels);
    CU_ASSERT_EQUAL_FATAL(decode(file, bytes, rules, &grid, &reason), ERR_OK);
    CU_ASSERT_EQUAL(grid.width, strtoul(fields[4], NULL, 10));
    CU_ASSERT_EQUAL(grid.height, strtoul(fields[5], NULL, 10));
    picture_case_hash(room->pixels, (size_t)grid.width * grid.height * 3, hex);
    if (strcmp(hex, fields[6]) != 0) {
        (void)fprintf(stderr, "%s: other pixels\n", fields[0]);
    }
    CU_ASSERT_STRING_EQUAL(hex, fields[6]);
}

static void resized_pixels_are_the_references(void)
{
    CU_ASSERT_EQUAL(picture_case_rows("tests/image/resized.golden", 7, check_resized), 62);
}

/* The case images are their own fixed point: nothing is resized, and the pixels are those of the PNG. */
static int own_size_files;

static void check_own_size(const char *path)
{
    struct picture_case *room = picture_case_room();
    struct image_grid grid;
    struct image_header header;
    const char *reason;
    size_t bytes;
    const unsigned char *file = picture_case_read(room, path, &bytes);

    CU_ASSERT_EQUAL_FATAL(sniff_read_header(file, bytes, PICTURE_PIXELS_MAX, &header, &reason), ERR_OK);
    CU_ASSERT_EQUAL_FATAL(grid_fit(header.width, header.height, &RULES_QWEN25, &grid, &reason), ERR_OK);
    if (grid.width == header.width && grid.height == header.height) {
        CU_ASSERT_EQUAL_FATAL(decode(file, bytes, &RULES_QWEN25, &grid, &reason), ERR_OK);
        CU_ASSERT_EQUAL(memcmp(room->pixels, room->regions.rgb, (size_t)grid.width * grid.height * 3), 0);
        own_size_files++;
    }
}

static void a_picture_of_the_right_size_is_not_touched(void)
{
    (void)picture_case_visit("tests/data/fixtures/images/resized", check_own_size);
    CU_ASSERT(own_size_files >= 15);
}

/* NAME_WxH.png is what the model cases' processors made of NAME: both families' limits, hidden colours shown. */
static int case_files;

static void check_case(const char *path)
{
    struct picture_case *room = picture_case_room();
    struct image_header header;
    struct jmem work;
    const char *reason, *name = strrchr(path, '/') + 1, *size = strrchr(path, '_');
    char source[PICTURE_PATH_BYTES];
    size_t bytes;

    if (strstr(name, "alpha") != NULL || strstr(name, "trns") != NULL || strstr(name, "gray16") != NULL) {
        return; /* decided otherwise: on white; the high byte */
    }
    const unsigned char *file = picture_case_read(room, path, &bytes);
    CU_ASSERT_EQUAL_FATAL(picture_case_decode(room, file, bytes, &header, &reason), ERR_OK);
    uint32_t width = header.width, height = header.height;
    unsigned char *expected = room->pixels + (size_t)width * height * 3;
    memcpy(expected, room->regions.rgb, (size_t)width * height * 3);
    for (int is_png = 0; is_png < 2; is_png++) {
        (void)snprintf(source, sizeof source, "tests/data/fixtures/images/%.*s.%s", (int)(size - name), name,
                       is_png ? "png" : "jpg");
        long got = harness_read(source, room->buffer, PICTURE_FILE_BYTES_MAX);
        if (got > 0) {
            file = picture_case_place(room, room->buffer, (size_t)got);
            CU_ASSERT_EQUAL_FATAL(picture_case_decode(room, file, (size_t)got, &header, &reason), ERR_OK);
            jmem_open(&work, room->regions.work, room->regions.work_bytes);
            unsigned char *upright = jmem_take(&work, (size_t)header.width * header.height * 3);
            orient_write_upright(room->regions.rgb, header.stored_width, header.stored_height, header.orientation,
                                 upright);
            CU_ASSERT_TRUE(resize_bicubic(resize_path_best(), upright, header.width, header.height, room->pixels, width,
                                          height, &work, NULL));
            CU_ASSERT_EQUAL(memcmp(room->pixels, expected, (size_t)width * height * 3), 0);
            case_files++;
        }
    }
}

static void the_model_cases_pictures_are_equal(void)
{
    (void)picture_case_visit("tests/data/fixtures/images/resized", check_case);
    CU_ASSERT(case_files >= 20);
}

static void check_prefixes(const char *path)
{
    static unsigned char whole[64 * 1024];
    struct picture_case *room = picture_case_room();
    long bytes = harness_read(path, whole, sizeof whole);
    struct image_grid grid;
    const char *reason;

    CU_ASSERT_FATAL(bytes > 0);
    for (size_t count = 0; count <= (size_t)bytes; count++) {
        const unsigned char *file = picture_case_place(room, whole, count);
        enum err err = decode(file, count, &RULES_QWEN25, &grid, &reason);
        CU_ASSERT_EQUAL(err, count == (size_t)bytes ? ERR_OK : ERR_BAD_IMAGE);
        CU_ASSERT_PTR_NOT_NULL(reason);
    }
}

static void every_prefix_of_a_file_is_refused(void)
{
    check_prefixes("tests/data/images/pngsuite/basi3p04.png");
    check_prefixes("tests/data/images/pngsuite/tbbn0g04.png");
    check_prefixes("tests/data/images/jpeg-decoder/reftest/restarts.jpg");
    check_prefixes("tests/data/images/pillow/orientation_rectangle.jpg");
}

static int accepted, rejected;

static void check_any(const char *path)
{
    struct picture_case *room = picture_case_room();
    struct image_grid grid;
    const char *reason;
    size_t bytes;
    const unsigned char *file = picture_case_read(room, path, &bytes);
    enum err err = decode(file, bytes, &RULES_QWEN25, &grid, &reason);

    CU_ASSERT(err == ERR_OK || (err == ERR_BAD_IMAGE && reason != NULL && reason[0] != '\0'));
    accepted += err == ERR_OK;
    rejected += err != ERR_OK;
}

static void broken_files_give_a_clean_answer(void)
{
    static const char *const folders[] = {"jpeg-decoder/crashtest",
                                          "jpeg-decoder/crashtest/imagetestsuite",
                                          "jpeg-decoder/icc",
                                          "jpeg-decoder/unsupported",
                                          "zune/fuzz-jpeg",
                                          "zune/fuzz-png",
                                          "zune/jpeg",
                                          "pillow",
                                          "png-bugfixes",
                                          "libjpeg-turbo"};

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char folder[PICTURE_PATH_BYTES / 4];
        (void)snprintf(folder, sizeof folder, "tests/data/images/%s", folders[i]);
        (void)picture_case_visit(folder, check_any);
    }
    CU_ASSERT(accepted > 70);
    CU_ASSERT(rejected > 300);
}

/* Flips and cuts of two files, the same ones in every run. */
static void mutated_files_give_a_clean_answer(void)
{
    static const char *const paths[] = {"tests/data/images/zune/jpeg/tiny_non_interleaved_444.jpg",
                                        "tests/data/images/jpeg-decoder/reftest/restarts.jpg",
                                        "tests/data/fixtures/images/progressive150x200.jpg",
                                        "tests/data/images/pngsuite/basi6a08.png"};
    static unsigned char whole[256 * 1024], mutated[sizeof whole];
    uint32_t state = 12345;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        long bytes = harness_read(paths[i], whole, sizeof whole);
        CU_ASSERT_FATAL(bytes > 0);
        for (int n = 0; n < 250; n++) {
            struct image_grid grid;
            const char *reason;
            memcpy(mutated, whole, (size_t)bytes);
            for (int flip = 0; flip < 1 + n % 8; flip++) {
                state = state * 1664525 + 1013904223;
                mutated[(state >> 8) % (uint32_t)bytes] ^= (unsigned char)(1 << (state & 7));
            }
            const unsigned char *file = picture_case_place(picture_case_room(), mutated, (size_t)bytes);
            enum err err = decode(file, (size_t)bytes, &RULES_QWEN25, &grid, &reason);
            CU_ASSERT(err == ERR_OK || (err == ERR_BAD_IMAGE && reason != NULL && reason[0] != '\0'));
        }
    }
}

/* Arithmetic only: whatever fits the limits fits the regions, upright copy and resizing included. */
static void every_accepted_size_fits_the_planned_regions(void)
{
    static const uint64_t limits[] = {1, 784, 65536, 1048576, 67108864, 1000000000};
    static const struct image_rules rules[] = {{14, 2, 3136, 12845056, {0}, {1, 1, 1}},
                                               {16, 2, 65536, 16777216, {0}, {1, 1, 1}},
                                               {14, 2, 1, 784, {0}, {1, 1, 1}},
                                               {14, 2, 12845056, 12845056, {0}, {1, 1, 1}},
                                               {14, 2, 3136, 100352, {0}, {1, 1, 1}}};
    uint32_t state = 99;
    double fullest = 0;

    for (size_t i = 0; i < sizeof limits / sizeof limits[0] * sizeof rules / sizeof rules[0]; i++) {
        uint64_t limit = limits[i % 6];
        const struct image_rules *rule = &rules[i / 6];
        size_t work_bytes = picture_file_work_bytes(limit, rule);
        for (int n = 0; n < 5000; n++) {
            struct image_grid grid;
            const char *reason;
            state = state * 1664525 + 1013904223;
            uint64_t shorter = 1 + (uint64_t)(sqrt((double)limit) * ((state >> 8) % 1000) / 1000);
            uint64_t longer = n % 3 == 0 ? limit / shorter : shorter * (1 + (state >> 18) % 200);
            longer = longer > 200 * shorter ? 200 * shorter : longer;
            if (longer < 1 || longer > IMAGE_EDGE_MAX || shorter > IMAGE_EDGE_MAX || longer * shorter > limit) {
                continue;
            }
            uint32_t width = (uint32_t)(n % 2 == 0 ? shorter : longer),
                     height = (uint32_t)(n % 2 == 0 ? longer : shorter);
            CU_ASSERT_EQUAL_FATAL(grid_fit(width, height, rule, &grid, &reason), ERR_OK);
            size_t upright_bytes = ((size_t)width * height * 3 + 63) / 64 * 64;
            size_t needed = upright_bytes + resize_work_bytes(width, height, grid.width, grid.height);
            CU_ASSERT(needed <= work_bytes);
            CU_ASSERT((size_t)grid.width * grid.height * 3 <= picture_file_pixels_bytes(rule));
            fullest = fmax(fullest, (double)needed / (double)work_bytes);
        }
    }
    CU_ASSERT(fullest > 0.3);
}

static void the_largest_turned_picture_fits_in_memory(void)
{
    struct picture_case *room = picture_case_room();
    struct image_grid grid;
    const char *reason;
    size_t bytes;
    unsigned char *made = picture_make_jpeg(&(struct jpeg_shape){2048, 2048, 3, 1, 1, false, true, 1}, &bytes);
    /* An EXIF block with orientation 6 behind SOI. */
    static const unsigned char exif[] = {0xFF, 0xE1, 0, 34,   'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8,
                                         0,    1,    1, 0x12, 0,   3,   0,   0,   0, 1, 0,   6,   0, 0,  0, 0, 0, 0};
    unsigned char *file = room->buffer + PICTURE_FILE_BYTES_MAX - bytes - sizeof exif;

    memcpy(file, made, 2);
    memcpy(file + 2, exif, sizeof exif);
    memcpy(file + 2 + sizeof exif, made + 2, bytes - 2);
    free(made);
    CU_ASSERT_EQUAL(decode(file, bytes + sizeof exif, &RULES_QWEN3, &grid, &reason), ERR_OK);
    CU_ASSERT_EQUAL(grid.width, 2048);
}

static void no_heap_call_is_made(void)
{
    static const char *const paths[] = {
        "tests/data/fixtures/images/big900x700.jpg",
        "tests/data/fixtures/images/progressive150x200.jpg",
        "tests/data/fixtures/images/cmyk120x90.jpg",
        "tests/data/images/libjpeg-turbo/testimgari.jpg",
        "tests/data/images/zune/jpeg/non_interleaved_420_64x64.jpg",
        "tests/data/images/pngsuite/basi6a16.png",
        "tests/data/images/pngsuite/basn3p04.png",
        "tests/data/images/pngsuite/xcsn0g01.png",
        "tests/data/images/pillow/truncated_jpeg.jpg",
        "tests/data/fixtures/images/palette_trns100.png",
        "tests/data/images/pillow/icc-after-SOF.jpg",
        "tests/data/images/pngsuite/cten0g04.png",
        "tests/data/images/exif-orientation/Landscape_5.jpg",
    };

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct image_grid grid;
        const char *reason;
        unsigned char digest[32];
        size_t bytes;
        const unsigned char *file = picture_case_read(picture_case_room(), paths[i], &bytes);
        unsigned before = heap_calls;
        (void)!decode(file, bytes, &RULES_QWEN25, &grid, &reason);
        picture_file_digest(file, bytes, &RULES_QWEN25, digest);
        CU_ASSERT_EQUAL(heap_calls, before);
    }
#if HAS_COUNTER
    unsigned before = heap_calls;
    void *volatile memory = malloc(1); /* volatile: else the pair is left out */
    free(memory);
    CU_ASSERT(heap_calls >= before + 2); /* the counter counts */
#endif
}

static void a_set_flag_stops_it(void)
{
    static const atomic_bool is_cancelled = true;
    struct picture_case *room = picture_case_room();
    struct image_grid grid;
    const char *reason;
    size_t bytes;
    const unsigned char *file = picture_case_read(room, "tests/data/fixtures/images/big900x700.jpg", &bytes);
    struct picture_source source = {file, bytes, PICTURE_PIXELS_MAX, &is_cancelled};

    CU_ASSERT_EQUAL(
        picture_file_decode(&source, &RULES_QWEN25, &room->regions, room->pixels, room->pixels_bytes, &grid, &reason),
        ERR_CLIENT_GONE);
}

static void a_digest_names_file_and_rules(void)
{
    static const unsigned char file[] = "file";
    struct image_rules rules[8];
    unsigned char digests[10][32];

    for (int i = 0; i < 8; i++) {
        rules[i] = RULES_QWEN25;
    }
    rules[1].patch = 16;
    rules[2].merge = 1;
    rules[3].min_pixels++;
    rules[4].max_pixels++;
    rules[5].mean[2] = 0.25F;
    rules[6].std[0] = 2;
    rules[7].mean[0] = 0.25F;
    for (int i = 0; i < 8; i++) {
        picture_file_digest(file, 4, &rules[i], digests[i]);
    }
    picture_file_digest(file, 3, &rules[0], digests[8]);
    picture_file_digest(file, 4, &rules[0], digests[9]);
    CU_ASSERT_EQUAL(memcmp(digests[0], digests[9], 32), 0);
    for (int i = 0; i < 9; i++) {
        for (int k = i + 1; k < 9; k++) {
            CU_ASSERT_NOT_EQUAL(memcmp(digests[i], digests[k], 32), 0);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {CASE(resized_pixels_are_the_references),
                                                CASE(a_picture_of_the_right_size_is_not_touched),
                                                CASE(the_model_cases_pictures_are_equal),
                                                CASE(every_prefix_of_a_file_is_refused),
                                                CASE(broken_files_give_a_clean_answer),
                                                CASE(mutated_files_give_a_clean_answer),
                                                CASE(every_accepted_size_fits_the_planned_regions),
                                                CASE(the_largest_turned_picture_fits_in_memory),
                                                CASE(no_heap_call_is_made),
                                                CASE(a_set_flag_stops_it),
                                                CASE(a_digest_names_file_and_rules),
                                                {NULL, NULL}};

    return harness_run(argc, argv, "picture_file", cases, NULL);
}
