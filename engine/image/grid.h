/* grid: from a picture's size to the size it is resized to, its patch grid and its tokens. */
#ifndef ENGINE_IMAGE_GRID_H
#define ENGINE_IMAGE_GRID_H

#include "engine/err.h"

#include <stddef.h>
#include <stdint.h>

enum { GRID_RATIO_MAX = 200 }; /* long edge / short edge; the published processor's limit */

/* The preprocessor's configuration; engine/model fills it. An output edge is a multiple of patch * merge. */
struct image_rules {
    uint32_t patch;      /* pixels: edge of a patch (14 or 16) */
    uint32_t merge;      /* patches: edge of a merged token (2) */
    uint64_t min_pixels; /* area; at least 1 */
    uint64_t max_pixels; /* area; at least min_pixels */
    float mean[3];       /* of R, G, B in 0 .. 1 */
    float std[3];
};

struct image_grid {
    uint32_t width, height;  /* pixels after resizing */
    uint32_t grid_w, grid_h; /* patches; multiples of merge */
    uint32_t token_count;    /* grid_w * grid_h / merge^2 */
};

/* smart_resize of the published processor (spec-qwen-vl.md section 2: double arithmetic, ties to even) for an
 * upright picture of width x height source pixels. ERR_BAD_IMAGE with a constant text in *reason above an aspect
 * ratio of 200. */
enum err grid_fit(uint32_t width, uint32_t height, const struct image_rules *rules, struct image_grid *grid,
                  const char **reason) ERR_CHECKED;

/* Upper bound of grid->width * grid->height over all pictures: max_pixels, or more where the rules leave a thin picture
 * one patch row thick, or round up from min_pixels close to max_pixels. In pixels; a multiple of (patch * merge)^2. */
uint64_t grid_pixels_max(const struct image_rules *rules);

/* The same bound in tokens, for MM pages. */
uint32_t grid_tokens_max(const struct image_rules *rules);

#endif
