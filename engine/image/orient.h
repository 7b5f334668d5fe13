/* orient: applies an EXIF orientation to packed RGB. */
#ifndef ENGINE_IMAGE_ORIENT_H
#define ENGINE_IMAGE_ORIENT_H

#include <stdint.h>

/* Writes `stored`, uint8 [stored_height][stored_width][3], upright into `upright`, which has the edges exchanged for
 * orientations 5 .. 8. The two do not overlap. orientation: 1 .. 8. */
void orient_write_upright(const unsigned char *stored, uint32_t stored_width, uint32_t stored_height,
                          unsigned orientation, unsigned char *upright);

#endif
