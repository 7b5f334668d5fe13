/* exif: the orientation tag out of an EXIF block. */
#ifndef ENGINE_IMAGE_EXIF_H
#define ENGINE_IMAGE_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* `tiff`: the block from its byte order mark on (behind "Exif\0\0" in a JPEG; the eXIf chunk's data in a PNG). Returns
 * the orientation 1 .. 8 of the first directory; 1 if it has none, or if anything on the way there is broken. */
uint8_t exif_read_orientation(const unsigned char *tiff, size_t tiff_bytes);

#endif
