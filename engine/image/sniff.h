/* sniff: what a picture file's header says, without decoding it: intake counts tokens and refuses from this alone.
 *
 * Only the content counts; a MIME label is never looked at.
 */
#ifndef ENGINE_IMAGE_SNIFF_H
#define ENGINE_IMAGE_SNIFF_H

#include "engine/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum image_format { IMAGE_JPEG, IMAGE_PNG };

struct image_header {
    enum image_format format;
    uint32_t stored_width, stored_height; /* pixels, as the file has them; 1 .. IMAGE_EDGE_MAX */
    uint32_t width, height;               /* pixels, upright: exchanged for orientations 5 .. 8 */
    uint8_t orientation;                  /* EXIF 1 .. 8; 1 if absent or broken */
    uint8_t channels;                     /* JPEG components 1, 3, 4; PNG samples 1 .. 4 (a palette is 1) */
    uint8_t bit_depth;                    /* bits a sample */
    bool is_progressive;                  /* JPEG: SOF2 or SOF10 */
    bool is_interlaced;                   /* PNG: Adam7 */
    uint64_t coefficient_bytes;           /* JPEG: what the decoder keeps of them at once; 0 for one-scan files */
};

/* Reads the header of the file. ERR_BAD_IMAGE with a constant text in *reason when it is not a JPEG or PNG, is cut
 * short, has a zero or too long edge, more than max_source_pixels, or a coding that is not decoded here. Time is linear
 * in the bytes before the first scan (JPEG) or in the number of chunks (PNG). */
enum err sniff_read_header(const unsigned char *file, size_t file_bytes, uint64_t max_source_pixels,
                           struct image_header *header, const char **reason) ERR_CHECKED;

/* Longest edge of a picture of at most max_source_pixels that grid_fit accepts. */
uint32_t sniff_edge_max(uint64_t max_source_pixels);

/* What the plan holds for coefficients: enough for every picture of one or three components within max_source_pixels,
 * of four components (2 bytes more a pixel) up to three quarters of that. */
uint64_t sniff_coefficient_bytes_max(uint64_t max_source_pixels);

#endif
