/* jpeg: a JPEG file becomes packed RGB, as stored (orientation is not applied). */
#ifndef ENGINE_IMAGE_JPEG_H
#define ENGINE_IMAGE_JPEG_H

#include "engine/err.h"
#include "engine/image/jmem.h"
#include "engine/image/sniff.h"

#include <stdatomic.h>

/* Decodes baseline, extended, progressive and arithmetic JPEG of 8 bits into rgb, uint8
 * [header->stored_height][header->stored_width][3]. `header` is sniff_read_header's for the same file. CMYK and YCCK
 * are taken as inverted (Adobe's convention). All memory comes from `work`. ERR_BAD_IMAGE with a constant text in
 * *reason when the file ends early, is broken, or has more than JPEG_SCANS_MAX scans; ERR_CLIENT_GONE once
 * is_cancelled is seen. */
enum err jpeg_decode_rgb(const unsigned char *file, size_t file_bytes, const struct image_header *header,
                         struct jmem *work, unsigned char *rgb, const atomic_bool *is_cancelled,
                         const char **reason) ERR_CHECKED;

#endif
