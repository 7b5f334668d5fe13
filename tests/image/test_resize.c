/* test_resize: all paths give the same bytes, in exactly the memory asked for. (Pillow's bytes: test_picture_file.) */
#include "engine/image/resize.h"

#include "tests/image/picture_case.h"

static const struct resize_path *const PATHS[] = {&resize_path_scalar, &resize_path_avx2, &resize_path_avx512};
enum { PATH_COUNT = sizeof PATHS / sizeof PATHS[0], EDGE_MAX = 400, SIDE_BYTES = EDGE_MAX * EDGE_MAX * 3 };

struct room {
    unsigned char *source, *work_end, *out_end;
};

static struct room *open_room(void)
{
    static struct room room;

    if (room.source == NULL) {
        room.source = harness_memory(SIDE_BYTES + RESIZE_OVERREAD_BYTES);
        room.work_end = (unsigned char *)harness_memory(4 << 20) + (4 << 20);
        room.out_end = (unsigned char *)harness_memory(SIDE_BYTES) + SIDE_BYTES / 64 * 64;
        for (size_t i = 0; i < SIDE_BYTES; i++) {
            room.source[i] = (unsigned char)((i * 2654435761U >> 13) ^ (i / 1200));
        }
    }
    return &room;
}

/* The result, lying directly before an unreadable page, as the work region does. */
static unsigned char *resize(const struct resize_path *path, uint32_t source_width, uint32_t source_height,
                             uint32_t width, uint32_t height, const atomic_bool *is_cancelled, bool *is_done)
{
    struct room *room = open_room();
    struct jmem work;
    size_t work_bytes = resize_work_bytes(source_width, source_height, width, height);
    size_t source_bytes = (size_t)source_width * source_height * 3;
    unsigned char *out = room->out_end - (size_t)width * height * 3;

    /* The source ends where it may be over-read by no more than was promised. */
    jmem_open(&work, room->work_end - (work_bytes + 63) / 64 * 64, work_bytes);
    *is_done = resize_bicubic(path, room->source + SIDE_BYTES - source_bytes, source_width, source_height, out, width,
                              height, &work, is_cancelled);
    return out;
}

static void every_path_gives_the_plain_paths_bytes(void)
{
    static const uint32_t sizes[][4] = {
        {1, 1, 28, 28},     {1, 28, 28, 1},       {3, 5, 29, 31},   {100, 75, 112, 84}, {400, 400, 28, 28},
        {400, 3, 56, 28},   {3, 400, 28, 56},     {64, 64, 64, 28}, {64, 64, 28, 64},   {17, 400, 17, 33},
        {400, 17, 399, 17}, {399, 397, 392, 392}, {33, 2, 34, 3},   {7, 398, 1, 1},     {250, 250, 251, 249},
        {2, 2, 395, 390},   {5, 1, 10, 1},        {1, 5, 1, 10},    {31, 6, 10, 6},     {31, 7, 10, 7},
    };
    static unsigned char plain[SIDE_BYTES];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const uint32_t *s = sizes[i];
        bool is_done;
        unsigned char *out = resize(&resize_path_scalar, s[0], s[1], s[2], s[3], NULL, &is_done);
        CU_ASSERT_TRUE(is_done);
        memcpy(plain, out, (size_t)s[2] * s[3] * 3);
        for (int p = 1; p < PATH_COUNT; p++) {
            if (resize_path_usable(PATHS[p])) {
                memset(out, 0xA5, (size_t)s[2] * s[3] * 3);
                out = resize(PATHS[p], s[0], s[1], s[2], s[3], NULL, &is_done);
                CU_ASSERT_EQUAL(memcmp(out, plain, (size_t)s[2] * s[3] * 3), 0);
            }
        }
    }
}

static void the_same_size_is_a_copy(void)
{
    struct room *room = open_room();
    bool is_done;
    unsigned char *out = resize(resize_path_best(), 40, 30, 40, 30, NULL, &is_done);

    CU_ASSERT_TRUE(is_done);
    CU_ASSERT_EQUAL(memcmp(out, room->source + SIDE_BYTES - 40 * 30 * 3, 40 * 30 * 3), 0);
}

/* Weights of an output add up to 2^22 within rounding: a flat picture stays flat. */
static void a_flat_picture_stays_flat(void)
{
    struct room *room = open_room();
    static unsigned char saved[SIDE_BYTES];

    memcpy(saved, room->source, SIDE_BYTES);
    for (unsigned level = 0; level < 256; level += 51) {
        memset(room->source, (int)level, SIDE_BYTES);
        for (int p = 0; p < PATH_COUNT; p++) {
            bool is_done, is_flat = true;
            if (!resize_path_usable(PATHS[p])) {
                continue;
            }
            unsigned char *out = resize(PATHS[p], 300, 200, 112, 308, NULL, &is_done);
            for (size_t i = 0; i < 112 * 308 * 3; i++) {
                is_flat = is_flat && out[i] == level;
            }
            CU_ASSERT_TRUE(is_flat);
        }
    }
    memcpy(room->source, saved, SIDE_BYTES);
}

static void a_set_flag_stops_it(void)
{
    static const atomic_bool is_cancelled = true;
    bool is_done = true;

    (void)resize(resize_path_best(), 100, 100, 56, 56, &is_cancelled, &is_done);
    CU_ASSERT_FALSE(is_done);
    (void)resize(resize_path_best(), 100, 56, 56, 56, &is_cancelled, &is_done);
    CU_ASSERT_FALSE(is_done);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {CASE(every_path_gives_the_plain_paths_bytes),
                                                CASE(the_same_size_is_a_copy),
                                                CASE(a_flat_picture_stays_flat),
                                                CASE(a_set_flag_stops_it),
                                                {NULL, NULL}};

    return harness_run(argc, argv, "resize", cases, NULL);
}
