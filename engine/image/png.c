/* png: a PNG file becomes packed RGB on white.
 *
 * libpng's error call must not return: it leaves through the one setjmp here. What has to survive that lies in
 * struct decoding, never in a local of the function that called setjmp.
 */
#include "engine/image/png.h"

#include "config.h"

#include <assert.h>
#include <setjmp.h>
#include <string.h>

#include <png.h>

static const char NO_MEMORY[] = "the PNG needs more memory than --max-source-pixels plans for";

struct decoding {
    png_structp png;
    png_infop info;
    jmp_buf escape;
    const unsigned char *next;
    size_t left_bytes;
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

_Noreturn static void on_error(png_structp png, png_const_charp message)
{
    (void)message; /* may lie in libpng's own stack frame */
    leave(png_get_error_ptr(png), ERR_BAD_IMAGE, "broken PNG data");
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static png_voidp on_take(png_structp png, png_alloc_size_t bytes)
{
    return jmem_take(png_get_mem_ptr(png), bytes);
}

static void on_give_back(png_structp png, png_voidp memory)
{
    (void)png;
    (void)memory;
}

static void on_read(png_structp png, png_bytep bytes, size_t count)
{
    struct decoding *decoding = png_get_io_ptr(png);

    if (count > decoding->left_bytes) {
        leave(decoding, ERR_BAD_IMAGE, "the file ends early");
    }
    memcpy(bytes, decoding->next, count);
    decoding->next += count;
    decoding->left_bytes -= count;
}

/* colour * a/255 + 255 * (1 - a/255): Pillow's alpha_composite on an opaque white ground, rounding included. */
static unsigned char blend_white(unsigned colour, unsigned alpha)
{
    unsigned sum = colour * alpha + 255 * (255 - alpha) + 128;

    return (unsigned char)((sum * 128 + (sum >> 1)) >> 15);
}

static void blend_row(const unsigned char *rgba, uint32_t width, unsigned char *rgb)
{
    for (uint32_t x = 0; x < width; x++, rgba += 4, rgb += 3) {
        for (unsigned i = 0; i < 3; i++) {
            rgb[i] = blend_white(rgba[i], rgba[3]);
        }
    }
}

static void *take(struct decoding *decoding, size_t bytes)
{
    void *memory = jmem_take(decoding->work, bytes);

    if (memory == NULL) {
        leave(decoding, ERR_BAD_IMAGE, NO_MEMORY);
    }
    return memory;
}

static void read_row(struct decoding *decoding, unsigned char *row)
{
    if (decoding->is_cancelled != NULL && atomic_load_explicit(decoding->is_cancelled, memory_order_relaxed)) {
        leave(decoding, ERR_CLIENT_GONE, "cancelled");
    }
    png_read_row(decoding->png, row, NULL);
}

/* Rows go to the result at once. Those with alpha go through one row of RGBA, or, as interlaced rows fill up over seven
 * passes, through a whole picture of RGBA. */
static void read_rows(struct decoding *decoding, bool has_alpha)
{
    size_t width = decoding->header->stored_width;
    uint32_t height = decoding->header->stored_height;
    size_t row_bytes = width * (has_alpha ? 4 : 3);
    int pass_count = png_set_interlace_handling(decoding->png);
    bool is_whole = has_alpha && pass_count > 1;
    unsigned char *rgba = has_alpha ? take(decoding, row_bytes * (is_whole ? height : 1)) : NULL;

    png_read_update_info(decoding->png, decoding->info);
    if (png_get_rowbytes(decoding->png, decoding->info) != row_bytes) {
        leave(decoding, ERR_BAD_IMAGE, "broken PNG data");
    }
    for (int pass = 0; pass < pass_count; pass++) {
        for (uint32_t y = 0; y < height; y++) {
            unsigned char *rgb = decoding->rgb + y * width * 3;
            unsigned char *row = has_alpha ? rgba + (is_whole ? y * row_bytes : 0) : rgb;
            read_row(decoding, row);
            if (has_alpha && pass == pass_count - 1) {
                blend_row(row, (uint32_t)width, rgb);
            }
        }
    }
}

/* All calls into libpng. Returns only if every one of them went well. */
static void decode(struct decoding *decoding)
{
    decoding->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, decoding, on_error, on_warning, decoding->work,
                                             on_take, on_give_back);
    if (decoding->png == NULL) {
        leave(decoding, ERR_BAD_IMAGE, NO_MEMORY);
    }
    decoding->info = png_create_info_struct(decoding->png);
    if (decoding->info == NULL) {
        leave(decoding, ERR_BAD_IMAGE, NO_MEMORY);
    }
    png_set_read_fn(decoding->png, decoding, on_read);
    png_set_user_limits(decoding->png, IMAGE_EDGE_MAX, IMAGE_EDGE_MAX);
    /* Only IHDR, PLTE, tRNS, IDAT and IEND are read: no profile, text or time is kept or inflated. */
    png_set_keep_unknown_chunks(decoding->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);

    png_read_info(decoding->png, decoding->info);
    if (png_get_image_width(decoding->png, decoding->info) != decoding->header->stored_width ||
        png_get_image_height(decoding->png, decoding->info) != decoding->header->stored_height) {
        leave(decoding, ERR_BAD_IMAGE, "broken PNG header");
    }
    bool has_alpha = (png_get_color_type(decoding->png, decoding->info) & PNG_COLOR_MASK_ALPHA) != 0 ||
                     png_get_valid(decoding->png, decoding->info, PNG_INFO_tRNS) != 0;
    png_set_expand(decoding->png);
    png_set_strip_16(decoding->png);
    png_set_gray_to_rgb(decoding->png);
    read_rows(decoding, has_alpha);
    png_read_end(decoding->png, NULL);
}

static void decode_guarded(struct decoding *decoding)
{
    if (setjmp(decoding->escape) == 0) {
        decode(decoding);
    }
}

enum err png_decode_rgb(const unsigned char *file, size_t file_bytes, const struct image_header *header,
                        struct jmem *work, unsigned char *rgb, const atomic_bool *is_cancelled, const char **reason)
{
    assert(header->format == IMAGE_PNG);
    assert(file != NULL && work != NULL && rgb != NULL);
    struct decoding decoding = {
        .next = file,
        .left_bytes = file_bytes,
        .header = header,
        .work = work,
        .rgb = rgb,
        .is_cancelled = is_cancelled,
        .reason = "",
    };

    decode_guarded(&decoding); /* nothing is given back: the region's owner empties it as a whole */
    *reason = decoding.reason;
    return decoding.err;
}
