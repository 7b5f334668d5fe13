/* jmem: the memory of one picture's decoding.
 *
 * Always true between calls: what was taken lies in [0, used_bytes), in the order in which it was taken; nothing is
 * given back one by one. libjpeg's own pools take large pieces and give all back at the end, so nothing is lost by
 * that.
 */
#include "engine/image/jmem.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h> /* jpeglib.h names FILE and does not say so */

#include <jpeglib.h>

static _Thread_local struct jmem *served;

void jmem_open(struct jmem *region, unsigned char *base, size_t bytes)
{
    assert(base != NULL);
    assert((uintptr_t)base % JMEM_ALIGNMENT == 0);
    *region = (struct jmem){.base = base, .bytes = bytes};
}

void *jmem_take(struct jmem *region, size_t bytes)
{
    assert(region->used_bytes <= region->bytes);
    size_t left = region->bytes - region->used_bytes;

    if (bytes > left) {
        return NULL;
    }
    void *taken = region->base + region->used_bytes;
    size_t rounded = (bytes + JMEM_ALIGNMENT - 1) / JMEM_ALIGNMENT * JMEM_ALIGNMENT;
    region->used_bytes += rounded < left ? rounded : left;
    return taken;
}

void jmem_serve(struct jmem *region)
{
    assert(region == NULL || served == NULL);
    served = region;
}

/* The back end of libjpeg's memory manager. Debian installs no header for it; the prototypes are jmemsys.h's as
 * documented in libjpeg's description of its system-dependent part. They replace the library's own by their names. */
void *jpeg_get_small(j_common_ptr cinfo, size_t bytes);
void jpeg_free_small(j_common_ptr cinfo, void *object, size_t bytes);
void *jpeg_get_large(j_common_ptr cinfo, size_t bytes);
void jpeg_free_large(j_common_ptr cinfo, void *object, size_t bytes);
size_t jpeg_mem_available(j_common_ptr cinfo, size_t min_bytes, size_t max_bytes, size_t taken_bytes);
void jpeg_open_backing_store(j_common_ptr cinfo, void *store, long total_bytes);
long jpeg_mem_init(j_common_ptr cinfo);
void jpeg_mem_term(j_common_ptr cinfo);

void *jpeg_get_small(j_common_ptr cinfo, size_t bytes)
{
    (void)cinfo;
    assert(served != NULL);
    return jmem_take(served, bytes);
}

void jpeg_free_small(j_common_ptr cinfo, void *object, size_t bytes)
{
    (void)cinfo;
    (void)object;
    (void)bytes;
}

void *jpeg_get_large(j_common_ptr cinfo, size_t bytes)
{
    return jpeg_get_small(cinfo, bytes);
}

void jpeg_free_large(j_common_ptr cinfo, void *object, size_t bytes)
{
    jpeg_free_small(cinfo, object, bytes);
}

/* "All of it": the manager then never asks for a backing store; what does not fit fails in jpeg_get_large. (For a
 * picture that is smaller than one access to it, min_bytes is above max_bytes.) */
size_t jpeg_mem_available(j_common_ptr cinfo, size_t min_bytes, size_t max_bytes, size_t taken_bytes)
{
    (void)cinfo;
    (void)min_bytes;
    (void)taken_bytes;
    return max_bytes;
}

void jpeg_open_backing_store(j_common_ptr cinfo, void *store, long total_bytes)
{
    (void)cinfo;
    (void)total_bytes;
    assert(store == NULL); /* never: jpeg_mem_available promised memory for everything */
}

/* The manager's limit; 0: jpeg_mem_available knows better. */
long jpeg_mem_init(j_common_ptr cinfo)
{
    (void)cinfo;
    return 0;
}

void jpeg_mem_term(j_common_ptr cinfo)
{
    (void)cinfo;
}
