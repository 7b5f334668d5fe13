/* picture_file: a JPEG or PNG file becomes resized RGB pixels, in planned memory: the whole way of one picture.
 *
 * One call decodes one picture with two regions of its worker; between calls the regions hold nothing of value.
 */
#ifndef ENGINE_IMAGE_PICTURE_FILE_H
#define ENGINE_IMAGE_PICTURE_FILE_H

#include "engine/err.h"
#include "engine/image/grid.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two regions a picture worker, aligned to 64, populated. */
struct picture_regions {
    unsigned char *rgb;  /* the decoded picture */
    size_t rgb_bytes;    /* >= picture_file_rgb_bytes() */
    unsigned char *work; /* the decoder's memory; then the upright picture, tables, rows between the passes */
    size_t work_bytes;   /* >= picture_file_work_bytes() */
};

struct picture_source {
    const unsigned char *file;
    size_t file_bytes;
    uint64_t max_source_pixels;      /* --max-source-pixels: what the regions were planned for */
    const atomic_bool *is_cancelled; /* looked at before each row; NULL: never cancelled */
};

/* 3 x pixels + 64 (vector loads may read, not use, that much behind the last pixel). */
size_t picture_file_rgb_bytes(uint64_t max_source_pixels);

/* max(6 P + 186 (E + P/E), 3.5 P + 128 W) + 192 E + 1 MiB, with P = max_source_pixels, E the longest edge of such a
 * picture (sniff_edge_max), W the longest edge after resizing: 6 P are the coefficients of a progressive 4:4:4 JPEG, 3
 * P an upright copy. Derivation in picture_file.c. */
size_t picture_file_work_bytes(uint64_t max_source_pixels, const struct image_rules *rules);

/* 3 x grid_pixels_max(rules): what a PIXELS slot needs. */
size_t picture_file_pixels_bytes(const struct image_rules *rules);

/* Decodes, applies EXIF orientation, puts transparency on white, and resizes. pixels_out: uint8 RGB
 * [grid->height][grid->width][3], of pixels_bytes >= picture_file_pixels_bytes(rules). *grid is what grid_fit gives for
 * the file's header. ERR_BAD_IMAGE with a constant text in *reason; ERR_CLIENT_GONE once is_cancelled is seen. */
enum err picture_file_decode(const struct picture_source *source, const struct image_rules *rules,
                             const struct picture_regions *regions, unsigned char *pixels_out, size_t pixels_bytes,
                             struct image_grid *grid, const char **reason) ERR_CHECKED;

/* SHA-256 of the file's bytes, then of everything in `rules`: the key of the feature cache. */
void picture_file_digest(const unsigned char *file, size_t file_bytes, const struct image_rules *rules,
                         unsigned char digest[32]);

#endif
