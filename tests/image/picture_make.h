/* picture_make: JPEG and PNG files of chosen shapes, made by the libraries' own encoders. */
#ifndef TESTS_IMAGE_PICTURE_MAKE_H
#define TESTS_IMAGE_PICTURE_MAKE_H

#include "engine/image/jmem.h"
#include "tests/harness.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

struct jpeg_shape {
    uint32_t width, height;
    int components;      /* 1, 3, or 4 */
    int h, v;            /* sampling of every component, or of the first one */
    bool is_first_only;  /* the others have 1 x 1 */
    bool is_progressive; /* every scan of one component: any sampling is allowed then */
    int scans;           /* progressive: AC coefficients are cut into so many scans a component (1 .. 63) */
};

static inline void picture_make_row(unsigned char *row, size_t count, uint32_t y)
{
    for (size_t i = 0; i < count; i++) {
        row[i] = (unsigned char)((i * 7 + y * 5) ^ (i * i >> 6) ^ (y * 3));
    }
}

static inline int picture_make_script(const struct jpeg_shape *shape, jpeg_scan_info *scans)
{
    int count = 0;

    for (int component = 0; component < shape->components; component++) {
        scans[count++] = (jpeg_scan_info){.comps_in_scan = 1, .component_index = {component}};
        for (int scan = 0, first = 1; scan < shape->scans; scan++) {
            int last = 63 * (scan + 1) / shape->scans;
            scans[count++] =
                (jpeg_scan_info){.comps_in_scan = 1, .component_index = {component}, .Ss = first, .Se = last};
            first = last + 1;
        }
    }
    return count;
}

/* The encoder's memory comes from the same back end: it is given a region of its own. */
static inline unsigned char *picture_make_jpeg(const struct jpeg_shape *shape, size_t *file_bytes)
{
    static struct jmem region;
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    jpeg_scan_info scans[4 * 64];
    unsigned char *file = NULL, *row = malloc((size_t)shape->width * 4);
    unsigned long bytes = 0;

    if (region.base == NULL) {
        jmem_open(&region, harness_memory((size_t)256 << 20), (size_t)256 << 20);
    }
    region.used_bytes = 0;
    jmem_serve(&region);
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &file, &bytes);
    cinfo.image_width = shape->width;
    cinfo.image_height = shape->height;
    cinfo.input_components = shape->components;
    cinfo.in_color_space = shape->components == 4 ? JCS_CMYK : shape->components == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, 50, TRUE);
    for (int i = 0; i < shape->components; i++) {
        cinfo.comp_info[i].h_samp_factor = i > 0 && shape->is_first_only ? 1 : shape->h;
        cinfo.comp_info[i].v_samp_factor = i > 0 && shape->is_first_only ? 1 : shape->v;
    }
    if (shape->is_progressive) {
        cinfo.num_scans = picture_make_script(shape, scans);
        cinfo.scan_info = scans;
    }
    jpeg_start_compress(&cinfo, TRUE);
    for (uint32_t y = 0; y < shape->height; y++) {
        picture_make_row(row, (size_t)shape->width * (size_t)shape->components, y);
        JSAMPROW rows = row;
        (void)jpeg_write_scanlines(&cinfo, &rows, 1);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    jmem_serve(NULL);
    free(row);
    *file_bytes = bytes;
    return file;
}

struct png_bytes {
    unsigned char *bytes;
    size_t count, capacity;
};

static inline void picture_make_write(png_structp png, png_bytep bytes, size_t count)
{
    struct png_bytes *file = png_get_io_ptr(png);

    if (file->capacity - file->count < count) {
        file->capacity = file->capacity * 2 + count;
        file->bytes = realloc(file->bytes, file->capacity);
    }
    memcpy(file->bytes + file->count, bytes, count);
    file->count += count;
}

static inline void picture_make_flush(png_structp png)
{
    (void)png;
}

/* Of the colour type and depth given (no palette). `key`: a tRNS chunk of this 16-bit gray; NULL: none. */
static inline unsigned char *picture_make_png(uint32_t width, uint32_t height, int colour, int depth,
                                              bool is_interlaced, const uint16_t *key, size_t *file_bytes)
{
    struct png_bytes file = {NULL, 0, 0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);

    png_set_write_fn(png, &file, picture_make_write, picture_make_flush);
    png_set_IHDR(png, info, width, height, depth, colour, is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, (uint64_t)width * height > 1000000 ? 0 : 1); /* large ones: for the time it takes */
    if (key != NULL) {
        png_color_16 transparent = {.gray = *key};
        png_set_tRNS(png, info, NULL, 0, &transparent);
    }
    png_write_info(png, info);
    size_t row_bytes = png_get_rowbytes(png, info);
    unsigned char *row = malloc(row_bytes);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++) {
        for (uint32_t y = 0; y < height; y++) {
            picture_make_row(row, row_bytes, y);
            png_write_row(png, row);
        }
    }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    free(row);
    *file_bytes = file.count;
    return file.bytes;
}

#endif
