/* jpeg: a JPEG file becomes packed RGB.
 *
 * libjpeg's error exit must not return: it leaves through the one setjmp here. What has to survive that lies in
 * struct decoding, never in a local of the function that called setjmp.
 */
#include "engine/image/jpeg.h"

#include "config.h"

#include <assert.h>
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h names FILE and does not say so */
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

static const char NO_MEMORY[] = "the JPEG needs more memory than --max-source-pixels plans for";

struct decoding {
    struct jpeg_decompress_struct cinfo; /* client_data points back here */
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    const struct image_header *header;
    struct jmem *work;
    unsigned char *rgb;
    const atomic_bool *is_cancelled;
    enum err err;
    const char *reason;
};

_Noreturn static void leave(struct decoding *decoding, enum err err, const char *reason)
{
    assert(err != ERR_OK);
    decoding->err = err;
    decoding->reason = reason;
    longjmp(decoding->escape, 1);
}

static void on_error(j_common_ptr cinfo)
{
    const char *reason = "broken JPEG data";

    switch (cinfo->err->msg_code) {
    case JERR_OUT_OF_MEMORY:
        reason = NO_MEMORY;
        break;
    case JERR_ARITH_NOTIMPL:
        reason = "arithmetic JPEG is not supported by this libjpeg";
        break;
    case JERR_NO_HUFF_TABLE:
    case JERR_NO_QUANT_TABLE:
        reason = "broken JPEG (missing table)";
        break;
    default:
        break;
    }
    leave(cinfo->client_data, ERR_BAD_IMAGE, reason);
}

/* Warnings are about data that decodes in some way, as Pillow takes it; a file that ends early never gets here. */
static void on_message(j_common_ptr cinfo, int level)
{
    if (level < 0) {
        cinfo->err->num_warnings++;
    }
}

static void on_output(j_common_ptr cinfo)
{
    (void)cinfo;
}

/* Called for each row of MCUs that is read and each row of pixels that is asked for. */
static void on_progress(j_common_ptr cinfo)
{
    struct decoding *decoding = cinfo->client_data;

    if (decoding->is_cancelled != NULL && atomic_load_explicit(decoding->is_cancelled, memory_order_relaxed)) {
        leave(decoding, ERR_CLIENT_GONE, "cancelled");
    }
    if (decoding->cinfo.input_scan_number > JPEG_SCANS_MAX) {
        leave(decoding, ERR_BAD_IMAGE, "a JPEG of more than 100 scans");
    }
}

static void source_open(j_decompress_ptr cinfo)
{
    (void)cinfo;
}

/* The whole file was given at once: being asked for more means that it ends early. */
static boolean source_fill(j_decompress_ptr cinfo)
{
    leave(cinfo->client_data, ERR_BAD_IMAGE, "the file ends early");
}

static void source_skip(j_decompress_ptr cinfo, long bytes)
{
    if (bytes <= 0) {
        return;
    }
    if ((unsigned long)bytes > cinfo->src->bytes_in_buffer) {
        leave(cinfo->client_data, ERR_BAD_IMAGE, "the file ends early");
    }
    cinfo->src->next_input_byte += bytes;
    cinfo->src->bytes_in_buffer -= (size_t)bytes;
}

/* x * y / 255, rounded, for x and y of 0 .. 255. */
static unsigned multiply_255(unsigned x, unsigned y)
{
    unsigned product = x * y + 128;

    return (product + (product >> 8)) >> 8;
}

/* Adobe writes 255 - ink. With the inks c and k: colour = (255 - k) - c (255 - k) / 255, cut at 0. */
static void convert_cmyk_row(const unsigned char *cmyk, uint32_t width, unsigned char *rgb)
{
    assert(cmyk != NULL && rgb != NULL);
    for (uint32_t x = 0; x < width; x++, cmyk += 4, rgb += 3) {
        unsigned light = cmyk[3];
        for (unsigned i = 0; i < 3; i++) {
            unsigned absorbed = multiply_255(255U - cmyk[i], light);
            rgb[i] = (unsigned char)(light > absorbed ? light - absorbed : 0);
        }
    }
}

static void read_rows(struct decoding *decoding)
{
    j_decompress_ptr cinfo = &decoding->cinfo;
    size_t row_bytes = (size_t)decoding->header->stored_width * 3;
    bool is_cmyk = cinfo->out_color_space == JCS_CMYK;
    unsigned char *cmyk = NULL;

    if (is_cmyk) {
        cmyk = jmem_take(decoding->work, (size_t)decoding->header->stored_width * 4);
        if (cmyk == NULL) {
            leave(decoding, ERR_BAD_IMAGE, NO_MEMORY);
        }
    }
    while (cinfo->output_scanline < cinfo->output_height) {
        unsigned char *rgb = decoding->rgb + cinfo->output_scanline * row_bytes;
        JSAMPROW row = is_cmyk ? cmyk : rgb;
        JDIMENSION got = jpeg_read_scanlines(cinfo, &row, 1);
        assert(got == 1); /* the source never suspends */
        if (is_cmyk) {
            convert_cmyk_row(cmyk, decoding->header->stored_width, rgb);
        }
    }
}

/* All calls into libjpeg. Returns only if every one of them went well. */
static void decode(struct decoding *decoding)
{
    j_decompress_ptr cinfo = &decoding->cinfo;

    jpeg_create_decompress(cinfo); /* keeps err and client_data */
    cinfo->src = &decoding->source;
    cinfo->progress = &decoding->progress;
    (void)jpeg_read_header(cinfo, TRUE);
    if (cinfo->image_width != decoding->header->stored_width ||
        cinfo->image_height != decoding->header->stored_height || cinfo->num_components != decoding->header->channels) {
        leave(decoding, ERR_BAD_IMAGE, "broken JPEG header (two frames)");
    }
    cinfo->out_color_space = cinfo->num_components == 4 ? JCS_CMYK : JCS_RGB;
    cinfo->dct_method = JDCT_ISLOW;
    cinfo->do_fancy_upsampling = TRUE;
    (void)jpeg_start_decompress(cinfo);
    read_rows(decoding);
    (void)jpeg_finish_decompress(cinfo); /* reads on to the end marker: without one the file is cut short */
}

static void decode_guarded(struct decoding *decoding)
{
    jmem_serve(decoding->work);
    if (setjmp(decoding->escape) == 0) {
        decode(decoding);
    }
    jmem_serve(NULL); /* nothing is given back: the region's owner empties it as a whole */
}

enum err jpeg_decode_rgb(const unsigned char *file, size_t file_bytes, const struct image_header *header,
                         struct jmem *work, unsigned char *rgb, const atomic_bool *is_cancelled, const char **reason)
{
    assert(header->format == IMAGE_JPEG);
    assert(file != NULL && work != NULL && rgb != NULL);
    struct decoding decoding = {
        .source = {.next_input_byte = file,
                   .bytes_in_buffer = file_bytes,
                   .init_source = source_open,
                   .fill_input_buffer = source_fill,
                   .skip_input_data = source_skip,
                   .resync_to_restart = jpeg_resync_to_restart,
                   .term_source = source_open},
        .progress = {.progress_monitor = on_progress},
        .header = header,
        .work = work,
        .rgb = rgb,
        .is_cancelled = is_cancelled,
        .reason = "",
    };
    decoding.cinfo.err = jpeg_std_error(&decoding.errors);
    decoding.cinfo.client_data = &decoding;
    decoding.errors.error_exit = on_error;
    decoding.errors.emit_message = on_message;
    decoding.errors.output_message = on_output;

    decode_guarded(&decoding);
    *reason = decoding.reason;
    return decoding.err;
}
