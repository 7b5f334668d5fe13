/* jmem: the memory of one picture's decoding: a region that is filled upwards and emptied at once.
 *
 * libjpeg gets it through the back end of its memory manager, which this module is; libpng and zlib through callbacks.
 */
#ifndef ENGINE_IMAGE_JMEM_H
#define ENGINE_IMAGE_JMEM_H

#include <stddef.h>

struct jmem {
    unsigned char *base; /* aligned to JMEM_ALIGNMENT */
    size_t bytes;
    size_t used_bytes; /* <= bytes; a multiple of JMEM_ALIGNMENT, or bytes */
};

enum { JMEM_ALIGNMENT = 64 };

/* Lays an empty region over the caller's memory. */
void jmem_open(struct jmem *region, unsigned char *base, size_t bytes);

/* Takes `bytes` from the region, aligned to JMEM_ALIGNMENT, with unspecified contents. NULL when they do not fit. */
void *jmem_take(struct jmem *region, size_t bytes);

/* The region that libjpeg's memory manager takes from in this thread; NULL ends that. One decoding at a time a
 * thread. */
void jmem_serve(struct jmem *region);

#endif
