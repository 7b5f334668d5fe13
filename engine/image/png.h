/* png: a PNG file becomes packed RGB on white, as stored (orientation is not applied). */
#ifndef ENGINE_IMAGE_PNG_H
#define ENGINE_IMAGE_PNG_H

#include "engine/err.h"
#include "engine/image/jmem.h"
#include "engine/image/sniff.h"

#include <stdatomic.h>

/* Decodes every colour type, depth and interlace of PNG into rgb, uint8
 * [header->stored_height][header->stored_width][3]: 16 bits give their high byte, transparency (alpha or tRNS) goes
 * on white, gamma and colour profiles are ignored. `header` is sniff_read_header's for the same file. All memory
 * comes from `work`. ERR_BAD_IMAGE with a constant text in *reason when the file ends early or a needed chunk is
 * broken; ERR_CLIENT_GONE once is_cancelled is seen. */
enum err png_decode_rgb(const unsigned char *file, size_t file_bytes, const struct image_header *header,
                        struct jmem *work, unsigned char *rgb, const atomic_bool *is_cancelled,
                        const char **reason) ERR_CHECKED;

#endif
