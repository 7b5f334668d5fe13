/* fuzz_image: a file is decoded to the size that its header promised, or refused with a reason; in planned memory. */
#include "engine/image/grid.h"
#include "engine/image/picture_file.h"
#include "engine/image/sniff.h"
#include "tests/fuzz/fuzz.h"

static const uint64_t PIXELS_MAX = 256 * 1024;
static const struct image_rules rules = {
    .patch = 14, .merge = 2, .min_pixels = 3136, .max_pixels = 50176, .mean = {0.5F, 0.5F, 0.5F}, .std = {1, 1, 1}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct picture_regions regions;
    static unsigned char *pixels;
    struct image_header header;
    struct image_grid promised, grid;
    const char *reason = NULL;

    if (pixels == NULL) {
        regions.rgb_bytes = picture_file_rgb_bytes(PIXELS_MAX);
        regions.work_bytes = picture_file_work_bytes(PIXELS_MAX, &rules);
        regions.rgb = fuzz_room(regions.rgb_bytes);
        regions.work = aligned_alloc(64, (regions.work_bytes + 63) / 64 * 64);
        fuzz_demand(regions.work != NULL, "there is memory");
        pixels = fuzz_room(picture_file_pixels_bytes(&rules));
    }
    unsigned char *file = fuzz_copy(data, bytes);
    struct picture_source source = {.file = file, .file_bytes = bytes, .max_source_pixels = PIXELS_MAX};
    enum err err = sniff_read_header(file, bytes, PIXELS_MAX, &header, &reason);
    if (err == ERR_OK) {
        err = grid_fit(header.width, header.height, &rules, &promised, &reason);
    }
    bool is_promised = err == ERR_OK;
    err = picture_file_decode(&source, &rules, &regions, pixels, picture_file_pixels_bytes(&rules), &grid, &reason);
    fuzz_demand(is_promised || err != ERR_OK, "what sniff refuses is not decoded");
    if (err == ERR_OK) {
        fuzz_demand(memcmp(&grid, &promised, sizeof grid) == 0, "the picture has the promised size");
    } else {
        fuzz_demand(reason != NULL && reason[0] != '\0', "a refusal says why");
    }
    free(file);
    return 0;
}
