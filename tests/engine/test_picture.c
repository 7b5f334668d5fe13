/* Properties of engine/picture.c: one job at a time, on a thread of its own, each with its end. */
#include "engine/picture.h"
#include "pools/pools.h"
#include "tests/harness.h"

#include <string.h>

enum { SOURCE_PIXELS = 256 * 256, FILE_BYTES = 256 * 1024 };

static const struct image_rules rules = {
    .patch = 14, .merge = 2, .min_pixels = 3136, .max_pixels = 56448, .mean = {0.5f, 0.5f, 0.5f}, .std = {1, 1, 1}};
static struct picture_worker worker;
static struct wake done;
static unsigned char *pixels;

static struct picture read_picture(const char *path, unsigned char *file)
{
    long bytes = harness_read(path, file, FILE_BYTES);
    CU_ASSERT_FATAL(bytes > 0);
    return (struct picture){.file = file, .file_bytes = (size_t)bytes, .grid_h = 16, .grid_w = 16};
}

/* Gives the job and waits for its end. */
static enum err run_job(const struct picture *picture, const atomic_bool *is_cancelled, const char **reason)
{
    struct picture_job job = {.picture = picture,
                              .pixels = pixels,
                              .pixels_bytes = picture_file_pixels_bytes(&rules),
                              .is_cancelled = is_cancelled};
    enum err err = ERR_INTERNAL;

    uint32_t seen = wake_ticket(&done);
    picture_give(&worker, &job);
    while (!picture_take(&worker, &err, reason)) {
        (void)wake_wait(&done, seen, 1000);
        seen = wake_ticket(&done);
    }
    CU_ASSERT_FALSE(picture_is_done(&worker)); /* an end is taken once */
    return err;
}

static void a_picture_is_decoded_into_its_slot(void)
{
    static unsigned char file[FILE_BYTES];
    struct picture picture = read_picture("demo/samples/shapes.png", file);
    const char *reason;
    uint32_t different = 0;

    for (int round = 0; round < 3; round++) {
        memset(pixels, 0, 224 * 224 * 3);
        CU_ASSERT_EQUAL(run_job(&picture, NULL, &reason), ERR_OK);
        for (size_t i = 0; i < 224 * 224 * 3; i++) {
            different += pixels[i] != 0;
        }
        CU_ASSERT(different > 100000);
    }
}

static void a_damaged_picture_has_a_reason(void)
{
    static unsigned char file[FILE_BYTES];
    struct picture picture = read_picture("demo/samples/stars.png", file);
    const char *reason = NULL;

    memset(file + picture.file_bytes / 2, 0x55, picture.file_bytes / 4);
    CU_ASSERT_EQUAL(run_job(&picture, NULL, &reason), ERR_BAD_IMAGE);
    CU_ASSERT(reason != NULL && reason[0] != '\0');
}

static void a_job_that_nobody_wants_any_more_ends_early(void)
{
    static unsigned char file[FILE_BYTES];
    struct picture picture = read_picture("demo/samples/shapes.png", file);
    const char *reason;
    atomic_bool is_cancelled = true;

    CU_ASSERT_EQUAL(run_job(&picture, &is_cancelled, &reason), ERR_CLIENT_GONE);
}

static bool open_pools(void)
{
    static struct pool_plan plan;
    const struct pool_sizes sizes = {.image_rgb_bytes = picture_file_rgb_bytes(SOURCE_PIXELS),
                                     .image_work_bytes = picture_file_work_bytes(SOURCE_PIXELS, &rules)};
    const struct pool_limits limits = {.picture_workers = 1, .stacks = 1};

    return pools_plan(&sizes, &limits, 0, &plan) && pools_open(&plan);
}

int main(int argc, char **argv)
{
    static const struct harness_case cases[] = {
        CASE(a_picture_is_decoded_into_its_slot),
        CASE(a_damaged_picture_has_a_reason),
        CASE(a_job_that_nobody_wants_any_more_ends_early),
        {NULL, NULL},
    };
    if (!open_pools()) {
        return 2;
    }
    pixels = harness_memory(picture_file_pixels_bytes(&rules));
    picture_start(&worker, &rules, SOURCE_PIXELS, &done);
    int code = harness_run(argc, argv, "engine/picture", cases, NULL);
    picture_stop(&worker);
    return code;
}
