/* picture_file: a JPEG or PNG file becomes resized RGB pixels, in memory that was planned.
 *
 * What `work` must hold at once, with P pixels and longest edge E (sniff_edge_max) at most, n and e those of the
 * picture at hand, W the longest edge that it can be resized to. While decoding:
 * - JPEG: coefficients (sniff_coefficient_bytes_max), or none; sample rows of at most 4 components, 40 rows each with
 *   the largest sampling, so 160 e; one CMYK row 4 e; the library's records, below 200 KiB.
 * - PNG: 4 n for interlaced RGBA, else 4 e; two rows of 8 bytes a pixel, 16 e; records and zlib's window: 100 KiB.
 *
 * After that, the decoder's memory being free again: the upright picture, 3 n, and resize_work_bytes():
 * - tables: 16 bytes an input sample and up to 44 an output sample, both axes: 32 e + 88 W.
 * - rows between the passes: at most 3 width (4 source_height / height + 12) bytes, height being at least 28: below
 *   3 n / 7 + 36 W + 6 e; when the picture grows, less than 12 rows.
 */
#include "engine/image/picture_file.h"

#include "config.h"
#include "engine/image/jmem.h"
#include "engine/image/jpeg.h"
#include "engine/image/orient.h"
#include "engine/image/png.h"
#include "engine/image/resize.h"
#include "engine/image/sniff.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include <nettle/sha2.h>

enum {
    CHANNELS = 3,
    SOURCE_EDGE_BYTES = 192,  /* bytes for each pixel of E: the larger of 180 (decoders) and 38 (resizing) */
    RESIZED_EDGE_BYTES = 128, /* bytes for each pixel of W: 124, resizing */
    RECORD_BYTES = 1024 * 1024,
};

static_assert((int)SHA256_DIGEST_SIZE == 32, "the digest's size in the interface");

size_t picture_file_rgb_bytes(uint64_t max_source_pixels)
{
    assert(max_source_pixels > 0 && max_source_pixels <= (uint64_t)1 << 40);
    return (size_t)max_source_pixels * CHANNELS + RESIZE_OVERREAD_BYTES;
}

size_t picture_file_work_bytes(uint64_t max_source_pixels, const struct image_rules *rules)
{
    size_t resized_edge = (size_t)sqrt(GRID_RATIO_MAX * (double)grid_pixels_max(rules)) + 1;
    size_t decoding = (size_t)sniff_coefficient_bytes_max(max_source_pixels);
    size_t resizing = (size_t)max_source_pixels / 2 * 7 + RESIZED_EDGE_BYTES * resized_edge;
    size_t bytes = (decoding > resizing ? decoding : resizing) + RECORD_BYTES;

    bytes += (size_t)SOURCE_EDGE_BYTES * sniff_edge_max(max_source_pixels);
    return (bytes + JMEM_ALIGNMENT - 1) / JMEM_ALIGNMENT * JMEM_ALIGNMENT;
}

size_t picture_file_pixels_bytes(const struct image_rules *rules)
{
    return (size_t)grid_pixels_max(rules) * CHANNELS;
}

static enum err decode_stored(const struct picture_source *source, const struct image_header *header,
                              const struct picture_regions *regions, const char **reason)
{
    struct jmem work;

    jmem_open(&work, regions->work, regions->work_bytes);
    if (header->format == IMAGE_JPEG) {
        return jpeg_decode_rgb(source->file, source->file_bytes, header, &work, regions->rgb, source->is_cancelled,
                               reason);
    }
    return png_decode_rgb(source->file, source->file_bytes, header, &work, regions->rgb, source->is_cancelled, reason);
}

enum err picture_file_decode(const struct picture_source *source, const struct image_rules *rules,
                             const struct picture_regions *regions, unsigned char *pixels_out, size_t pixels_bytes,
                             struct image_grid *grid, const char **reason)
{
    struct image_header header;
    assert(regions->rgb_bytes >= picture_file_rgb_bytes(source->max_source_pixels));
    assert(regions->work_bytes >= picture_file_work_bytes(source->max_source_pixels, rules));

    enum err err = sniff_read_header(source->file, source->file_bytes, source->max_source_pixels, &header, reason);
    if (err == ERR_OK) {
        err = grid_fit(header.width, header.height, rules, grid, reason);
    }
    if (err == ERR_OK) {
        err = decode_stored(source, &header, regions, reason);
    }
    if (err != ERR_OK) {
        return err;
    }

    assert((size_t)grid->width * grid->height * CHANNELS <= pixels_bytes);
    const unsigned char *upright = regions->rgb;
    struct jmem work;
    jmem_open(&work, regions->work, regions->work_bytes);
    if (header.orientation != 1) {
        unsigned char *turned = jmem_take(&work, (size_t)header.width * header.height * CHANNELS);
        assert(turned != NULL);
        orient_write_upright(regions->rgb, header.stored_width, header.stored_height, header.orientation, turned);
        upright = turned;
    }
    if (!resize_bicubic(resize_path_best(), upright, header.width, header.height, pixels_out, grid->width, grid->height,
                        &work, source->is_cancelled)) {
        *reason = "cancelled";
        return ERR_CLIENT_GONE;
    }
    return ERR_OK;
}

static void digest_u64(struct sha256_ctx *context, uint64_t value)
{
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    sha256_update(context, sizeof bytes, bytes);
}

void picture_file_digest(const unsigned char *file, size_t file_bytes, const struct image_rules *rules,
                         unsigned char digest[32])
{
    struct sha256_ctx context;
    assert(file != NULL || file_bytes == 0);
    assert(rules != NULL);

    sha256_init(&context);
    digest_u64(&context, file_bytes); /* so that the rules cannot be read as the file's end */
    sha256_update(&context, file_bytes, file);
    digest_u64(&context, (uint64_t)rules->patch << 32 | rules->merge);
    digest_u64(&context, rules->min_pixels);
    digest_u64(&context, rules->max_pixels);
    for (int i = 0; i < CHANNELS; i++) {
        uint32_t mean, std;
        memcpy(&mean, &rules->mean[i], sizeof mean);
        memcpy(&std, &rules->std[i], sizeof std);
        digest_u64(&context, (uint64_t)mean << 32 | std);
    }
    sha256_digest(&context, SHA256_DIGEST_SIZE, digest);
}
