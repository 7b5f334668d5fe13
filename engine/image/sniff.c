/* sniff: what a picture file's header says, without decoding it.
 *
 * A cursor only moves forward and never past the file's end: each step reads a marker or a chunk whose length was
 * checked against what is left.
 */
#include "engine/image/sniff.h"

#include "config.h"
#include "engine/image/exif.h"
#include "engine/image/grid.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

enum {
    MARKER_SOF0 = 0xC0,
    MARKER_SOF2 = 0xC2,
    MARKER_SOF3 = 0xC3,
    MARKER_DHT = 0xC4,
    MARKER_JPG = 0xC8,
    MARKER_SOF9 = 0xC9,
    MARKER_SOF10 = 0xCA,
    MARKER_DAC = 0xCC,
    MARKER_SOF15 = 0xCF,
    MARKER_RST0 = 0xD0,
    MARKER_EOI = 0xD9,
    MARKER_SOS = 0xDA,
    MARKER_APP1 = 0xE1,
    MARKER_TEM = 0x01,

    SOF_HEAD_BYTES = 6, /* precision, height, width, component count */
    SOF_COMPONENT_BYTES = 3,
    SAMPLING_MAX = 4,
    BLOCK_EDGE = 8, /* samples */
    BLOCK_COEFFICIENT_BYTES = BLOCK_EDGE * BLOCK_EDGE * 2,

    PNG_SIGNATURE_BYTES = 8,
    PNG_CHUNK_BYTES = 12, /* length, name, CRC */
    PNG_IHDR_BYTES = 13,
    PNG_LENGTH_MAX = 0x7FFFFFFF, /* the format's own limit */
};

static const unsigned char PNG_SIGNATURE[PNG_SIGNATURE_BYTES] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
static const char TRUNCATED[] = "the file ends early";

/* What other files begin with, so that the refusal can name what was sent. */
static const struct {
    const char *magic;
    size_t offset;
    const char *reason;
} OTHER_FORMATS[] = {
    {"GIF8", 0, "not a JPEG or PNG (GIF found)"},
    {"WEBP", 8, "not a JPEG or PNG (WebP found)"},
    {"BM", 0, "not a JPEG or PNG (BMP found)"},
    {"II*", 0, "not a JPEG or PNG (TIFF found)"},
    {"MM\0*", 0, "not a JPEG or PNG (TIFF found)"},
    {"ftypavif", 4, "not a JPEG or PNG (AVIF found)"},
    {"ftyp", 4, "not a JPEG or PNG (HEIF or video found)"},
    {"\xFF\x0A", 0, "not a JPEG or PNG (JPEG XL found)"},
    {"\0\0\0\x0CjP", 0, "not a JPEG or PNG (JPEG 2000 found)"},
    {"%PDF", 0, "not a JPEG or PNG (PDF found)"},
    {"<svg", 0, "not a JPEG or PNG (SVG found)"},
};
static const size_t OTHER_MAGIC_BYTES[] = {4, 4, 2, 3, 4, 8, 4, 2, 6, 4, 4};

static enum err refuse(const char **reason, const char *text)
{
    *reason = text;
    return ERR_BAD_IMAGE;
}

static uint32_t read_u16(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 8 | bytes[1];
}

static uint32_t read_u32(const unsigned char *bytes)
{
    return read_u16(bytes) << 16 | read_u16(bytes + 2);
}

/* The rules that both formats share, once the stored size is known. */
static enum err check_size(struct image_header *header, uint64_t max_source_pixels, const char **reason)
{
    if (header->stored_width == 0) {
        return refuse(reason, "zero width");
    }
    if (header->stored_height == 0) {
        return refuse(reason, "zero height");
    }
    if (header->stored_width > IMAGE_EDGE_MAX || header->stored_height > IMAGE_EDGE_MAX) {
        return refuse(reason, "an edge is longer than 65535 pixels");
    }
    if ((uint64_t)header->stored_width * header->stored_height > max_source_pixels) {
        return refuse(reason, "width x height over --max-source-pixels");
    }
    return ERR_OK;
}

static bool is_sof(unsigned marker)
{
    return marker >= MARKER_SOF0 && marker <= MARKER_SOF15 && marker != MARKER_DHT && marker != MARKER_JPG &&
           marker != MARKER_DAC;
}

/* Coefficients are kept in whole blocks, and in whole MCUs of the largest sampling: 2 bytes each. */
static enum err count_coefficients(struct image_header *header, const unsigned char *components, const char **reason)
{
    uint32_t h_max = 1, v_max = 1;

    for (uint32_t i = 0; i < header->channels; i++) {
        uint32_t h = components[i * SOF_COMPONENT_BYTES + 1] >> 4, v = components[i * SOF_COMPONENT_BYTES + 1] & 15;
        if (h == 0 || v == 0 || h > SAMPLING_MAX || v > SAMPLING_MAX) {
            return refuse(reason, "broken JPEG header (sampling factor)");
        }
        h_max = h > h_max ? h : h_max;
        v_max = v > v_max ? v : v_max;
    }
    uint64_t mcus_across = (header->stored_width + h_max * BLOCK_EDGE - 1) / (h_max * BLOCK_EDGE);
    uint64_t mcus_down = (header->stored_height + v_max * BLOCK_EDGE - 1) / (v_max * BLOCK_EDGE);
    header->coefficient_bytes = 0;
    for (uint32_t i = 0; i < header->channels; i++) {
        uint32_t h = components[i * SOF_COMPONENT_BYTES + 1] >> 4, v = components[i * SOF_COMPONENT_BYTES + 1] & 15;
        header->coefficient_bytes += mcus_across * h * mcus_down * v * BLOCK_COEFFICIENT_BYTES;
    }
    return ERR_OK;
}

uint32_t sniff_edge_max(uint64_t max_source_pixels)
{
    assert(max_source_pixels > 0);
    double longest = ceil(sqrt(GRID_RATIO_MAX * (double)max_source_pixels));

    return longest < IMAGE_EDGE_MAX ? (uint32_t)longest : IMAGE_EDGE_MAX;
}

/* With c components, edges w and h and MCUs of at most 32 x 32 samples: 2 c (w + 31) (h + 31). For c = 3 that is
 * 6 w h + 186 (w + h) + 5766; with w h <= P and both edges at most E, w + h is largest at w = E, h = P / E. */
uint64_t sniff_coefficient_bytes_max(uint64_t max_source_pixels)
{
    uint64_t edge = sniff_edge_max(max_source_pixels), other = max_source_pixels / edge + 1;

    assert(max_source_pixels <= (uint64_t)1 << 40);
    return 6 * max_source_pixels + 186 * (edge + (other < edge ? other : edge)) + 5766;
}

static enum err read_sof(unsigned marker, const unsigned char *segment, size_t segment_bytes,
                         struct image_header *header, const char **reason)
{
    assert(is_sof(marker));

    if (marker != MARKER_SOF0 && marker != MARKER_SOF0 + 1 && marker != MARKER_SOF2 && marker != MARKER_SOF9 &&
        marker != MARKER_SOF10) {
        return refuse(reason, "lossless or hierarchical JPEG is not supported");
    }
    if (segment_bytes < SOF_HEAD_BYTES || segment_bytes != SOF_HEAD_BYTES + (size_t)segment[5] * SOF_COMPONENT_BYTES) {
        return refuse(reason, "broken JPEG header (frame length)");
    }
    header->bit_depth = segment[0];
    header->stored_height = read_u16(segment + 1);
    header->stored_width = read_u16(segment + 3);
    header->channels = segment[5];
    header->is_progressive = marker == MARKER_SOF2 || marker == MARKER_SOF10;
    if (header->bit_depth != 8) {
        return refuse(reason, "JPEG samples of other than 8 bits are not supported");
    }
    if (header->channels != 1 && header->channels != 3 && header->channels != 4) {
        return refuse(reason, "unsupported colour space (JPEG with other than 1, 3 or 4 components)");
    }
    return count_coefficients(header, segment + SOF_HEAD_BYTES, reason);
}

/* A first scan of all components of a sequential picture is decoded row by row: no coefficients are kept. */
static void read_sos(const unsigned char *segment, size_t segment_bytes, struct image_header *header)
{
    if (!header->is_progressive && segment_bytes > 0 && segment[0] == header->channels) {
        header->coefficient_bytes = 0;
    }
}

/* Walks the marker segments up to the first scan. Bytes between segments are skipped, as the decoder skips them. */
static enum err read_jpeg(const unsigned char *file, size_t file_bytes, struct image_header *header,
                          const char **reason)
{
    bool has_frame = false, has_exif = false;
    size_t at = 2;

    header->format = IMAGE_JPEG;
    for (;;) {
        while (at < file_bytes &&
               (file[at] != 0xFF || at + 1 >= file_bytes || file[at + 1] == 0xFF || file[at + 1] == 0)) {
            at++;
        }
        if (at >= file_bytes) {
            return refuse(reason, TRUNCATED);
        }
        unsigned marker = file[at + 1];
        at += 2;
        if (marker == MARKER_TEM || (marker >= MARKER_RST0 && marker < MARKER_RST0 + 8)) {
            continue;
        }
        if (marker == MARKER_EOI) {
            return refuse(reason, "no picture in the JPEG");
        }
        if (marker == MARKER_SOS && !has_frame) {
            return refuse(reason, "broken JPEG header (scan before frame)");
        }
        if (file_bytes - at < 2) {
            return refuse(reason, TRUNCATED);
        }
        size_t length = read_u16(file + at);
        if (length < 2) {
            return refuse(reason, "broken JPEG header (segment length)");
        }
        if (file_bytes - at < length) {
            return refuse(reason, TRUNCATED);
        }
        const unsigned char *segment = file + at + 2;
        if (marker == MARKER_SOS) {
            read_sos(segment, length - 2, header);
            return ERR_OK;
        }
        if (is_sof(marker)) {
            if (has_frame) {
                return refuse(reason, "broken JPEG header (two frames)");
            }
            has_frame = true;
            enum err err = read_sof(marker, segment, length - 2, header, reason);
            if (err != ERR_OK) {
                return err;
            }
        } else if (marker == MARKER_APP1 && !has_exif && length >= 8 && memcmp(segment, "Exif\0\0", 6) == 0) {
            has_exif = true;
            header->orientation = exif_read_orientation(segment + 6, length - 8);
        }
        at += length;
    }
}

static enum err read_ihdr(const unsigned char *ihdr, struct image_header *header, const char **reason)
{
    static const uint8_t channels[7] = {1, 0, 3, 1, 2, 0, 4};
    static const uint32_t depths[7] = {0x10116, 0, 0x10100, 0x116, 0x10100, 0, 0x10100}; /* bit d: depth d exists */
    unsigned depth = ihdr[8], colour = ihdr[9];

    header->stored_width = read_u32(ihdr);
    header->stored_height = read_u32(ihdr + 4);
    if (colour > 6 || channels[colour] == 0 || depth > 16 || (depths[colour] >> depth & 1) == 0) {
        return refuse(reason, "broken PNG header (colour type and bit depth)");
    }
    if (ihdr[10] != 0 || ihdr[11] != 0 || ihdr[12] > 1) {
        return refuse(reason, "broken PNG header (compression, filter or interlace method)");
    }
    header->bit_depth = (uint8_t)depth;
    header->channels = channels[colour];
    header->is_interlaced = ihdr[12] == 1;
    return ERR_OK;
}

/* Walks the chunks by their lengths, for an eXIf chunk on either side of the pixels. */
static void find_png_exif(const unsigned char *file, size_t file_bytes, struct image_header *header)
{
    size_t at = PNG_SIGNATURE_BYTES;

    while (file_bytes - at >= PNG_CHUNK_BYTES) {
        const unsigned char *chunk = file + at;
        size_t length = read_u32(chunk);
        if (length > PNG_LENGTH_MAX || length > file_bytes - at - PNG_CHUNK_BYTES ||
            memcmp(chunk + 4, "IEND", 4) == 0) {
            return;
        }
        if (memcmp(chunk + 4, "eXIf", 4) == 0) {
            if (crc32(0, chunk + 4, (uInt)length + 4) == read_u32(chunk + 8 + length)) {
                header->orientation = exif_read_orientation(chunk + 8, length);
            }
            return;
        }
        at += PNG_CHUNK_BYTES + length;
        assert(at <= file_bytes);
    }
}

static enum err read_png(const unsigned char *file, size_t file_bytes, struct image_header *header, const char **reason)
{
    const unsigned char *ihdr = file + PNG_SIGNATURE_BYTES;

    header->format = IMAGE_PNG;
    if (file_bytes < PNG_SIGNATURE_BYTES + PNG_CHUNK_BYTES + PNG_IHDR_BYTES) {
        return refuse(reason, TRUNCATED);
    }
    if (read_u32(ihdr) != PNG_IHDR_BYTES || memcmp(ihdr + 4, "IHDR", 4) != 0 ||
        crc32(0, ihdr + 4, 4 + PNG_IHDR_BYTES) != read_u32(ihdr + 8 + PNG_IHDR_BYTES)) {
        return refuse(reason, "broken PNG header");
    }
    enum err err = read_ihdr(ihdr + 8, header, reason);
    if (err == ERR_OK) {
        find_png_exif(file, file_bytes, header);
    }
    return err;
}

static enum err refuse_other(const unsigned char *file, size_t file_bytes, const char **reason)
{
    static_assert(sizeof OTHER_FORMATS / sizeof OTHER_FORMATS[0] == sizeof OTHER_MAGIC_BYTES / sizeof(size_t),
                  "one length a format");

    for (size_t i = 0; i < sizeof OTHER_FORMATS / sizeof OTHER_FORMATS[0]; i++) {
        size_t offset = OTHER_FORMATS[i].offset;
        if (file_bytes >= offset + OTHER_MAGIC_BYTES[i] &&
            memcmp(file + offset, OTHER_FORMATS[i].magic, OTHER_MAGIC_BYTES[i]) == 0) {
            return refuse(reason, OTHER_FORMATS[i].reason);
        }
    }
    return refuse(reason, file_bytes == 0 ? "empty" : "not a JPEG or PNG");
}

enum err sniff_read_header(const unsigned char *file, size_t file_bytes, uint64_t max_source_pixels,
                           struct image_header *header, const char **reason)
{
    assert(file != NULL && header != NULL && reason != NULL);
    enum err err;

    *header = (struct image_header){.orientation = 1};
    *reason = "";
    if (file_bytes >= 2 && file[0] == 0xFF && file[1] == 0xD8) {
        err = read_jpeg(file, file_bytes, header, reason);
    } else if (file_bytes >= PNG_SIGNATURE_BYTES && memcmp(file, PNG_SIGNATURE, PNG_SIGNATURE_BYTES) == 0) {
        err = read_png(file, file_bytes, header, reason);
    } else {
        return refuse_other(file, file_bytes, reason);
    }
    if (err == ERR_OK) {
        err = check_size(header, max_source_pixels, reason);
    }
    if (err == ERR_OK && header->coefficient_bytes > sniff_coefficient_bytes_max(max_source_pixels)) {
        err = refuse(reason, "the JPEG's coefficients need more memory than --max-source-pixels plans for");
    }
    bool is_turned = header->orientation >= 5;
    header->width = is_turned ? header->stored_height : header->stored_width;
    header->height = is_turned ? header->stored_width : header->stored_height;
    return err;
}
