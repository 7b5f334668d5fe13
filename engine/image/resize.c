/* resize: bicubic resampling of packed 8-bit RGB: tables, the order of rows, and the plain path.
 *
 * Rows between the passes live in a ring: row r of the source, once narrowed, lies in slot r % slot_count until the
 * last output row that needs it is written. So the passes share the cache and a picture's height costs no memory.
 */
#include "engine/image/resize.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { CHANNELS = 3, VECTOR_BYTES = 64 };

static const double SUPPORT = 2; /* the kernel is zero from here on */

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Keys' cubic with a = -0.5, in the order of operations of Pillow's. */
static double cubic(double x)
{
    const double a = -0.5;

    x = fabs(x);
    if (x < 1) {
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double axis_scale(uint32_t in_count, uint32_t out_count)
{
    double scale = (double)in_count / out_count;

    return scale > 1 ? scale : 1;
}

static uint32_t axis_tap_stride(uint32_t in_count, uint32_t out_count)
{
    double reach = ceil(SUPPORT * axis_scale(in_count, out_count));

    return (uint32_t)round_up((size_t)reach * 2 + 1, 4);
}

static size_t axis_bytes(uint32_t in_count, uint32_t out_count)
{
    size_t weights = (size_t)out_count * axis_tap_stride(in_count, out_count) * sizeof(int32_t);

    return 2 * round_up(out_count * sizeof(uint32_t), JMEM_ALIGNMENT) + round_up(weights, JMEM_ALIGNMENT);
}

/* Slots of the ring: what one output row needs, and what the horizontal pass runs ahead. */
static uint32_t ring_slots(uint32_t in_count, uint32_t out_count)
{
    uint32_t slots = axis_tap_stride(in_count, out_count) + RESIZE_ROWS;

    return slots < in_count ? slots : in_count;
}

static size_t ring_row_bytes(uint32_t width)
{
    return round_up((size_t)width * CHANNELS, VECTOR_BYTES) + VECTOR_BYTES;
}

size_t resize_work_bytes(uint32_t source_width, uint32_t source_height, uint32_t width, uint32_t height)
{
    size_t bytes = RESIZE_OVERREAD_BYTES;

    if (source_width != width) {
        bytes += axis_bytes(source_width, width);
    }
    if (source_height != height) {
        bytes += axis_bytes(source_height, height);
        bytes += round_up(axis_tap_stride(source_height, height) * sizeof(unsigned char *), JMEM_ALIGNMENT);
    }
    if (source_width != width && source_height != height) {
        bytes += ring_row_bytes(width) * ring_slots(source_height, height);
    }
    return bytes;
}

static void *take(struct jmem *work, size_t bytes)
{
    void *memory = jmem_take(work, bytes);

    assert(memory != NULL); /* the caller planned resize_work_bytes() */
    return memory;
}

static void open_axis(struct resize_axis *axis, uint32_t in_count, uint32_t out_count, struct jmem *work)
{
    double step = (double)in_count / out_count, scale = axis_scale(in_count, out_count);
    double reach = SUPPORT * scale, inverse = 1 / scale;

    axis->out_count = out_count;
    axis->tap_stride = axis_tap_stride(in_count, out_count);
    axis->first = take(work, out_count * sizeof *axis->first);
    axis->tap_counts = take(work, out_count * sizeof *axis->tap_counts);
    axis->weights = take(work, (size_t)out_count * axis->tap_stride * sizeof *axis->weights);
    for (uint32_t i = 0; i < out_count; i++) {
        double centre = (i + 0.5) * step;
        double from = centre - reach + 0.5, to = centre + reach + 0.5;
        uint32_t first = from > 0 ? (uint32_t)from : 0;
        uint32_t end = to < in_count ? (uint32_t)to : in_count;
        int32_t *weights = axis->weights + (size_t)i * axis->tap_stride;
        double sum = 0;
        assert(first < end && end - first <= axis->tap_stride);

        for (uint32_t j = first; j < end; j++) {
            sum += cubic((j - centre + 0.5) * inverse);
        }
        for (uint32_t j = first; j < end; j++) {
            double weight = cubic((j - centre + 0.5) * inverse) / sum * (1 << RESIZE_WEIGHT_BITS);
            weights[j - first] = (int32_t)(weight < 0 ? weight - 0.5 : weight + 0.5);
        }
        memset(weights + (end - first), 0, (axis->tap_stride - (end - first)) * sizeof *weights);
        axis->first[i] = first;
        axis->tap_counts[i] = end - first;
    }
}

/* `sum` is exact: weights add up to 2^22, and the sum of their magnitudes stays below 2^23. */
static unsigned char finish(int32_t sum)
{
    int32_t value = (sum + (1 << (RESIZE_WEIGHT_BITS - 1))) >> RESIZE_WEIGHT_BITS;

    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void horizontal_scalar(const unsigned char *const *sources, unsigned char *const *outs,
                              const struct resize_axis *axis)
{
    for (uint32_t row = 0; row < RESIZE_ROWS; row++) {
        unsigned char *out = outs[row];
        for (uint32_t i = 0; i < axis->out_count; i++, out += CHANNELS) {
            const unsigned char *in = sources[row] + (size_t)axis->first[i] * CHANNELS;
            const int32_t *weights = axis->weights + (size_t)i * axis->tap_stride;
            int32_t red = 0, green = 0, blue = 0;
            for (uint32_t tap = 0; tap < axis->tap_counts[i]; tap++, in += CHANNELS) {
                red += weights[tap] * in[0];
                green += weights[tap] * in[1];
                blue += weights[tap] * in[2];
            }
            out[0] = finish(red);
            out[1] = finish(green);
            out[2] = finish(blue);
        }
    }
}

static void vertical_scalar(const unsigned char *const *rows, const int32_t *weights, uint32_t tap_count,
                            size_t row_bytes, unsigned char *out)
{
    enum { STRIP_BYTES = 256 }; /* sums of a strip stay in the cache while the rows pass */

    for (size_t at = 0; at < row_bytes; at += STRIP_BYTES) {
        size_t count = row_bytes - at < STRIP_BYTES ? row_bytes - at : STRIP_BYTES;
        int32_t sums[STRIP_BYTES] = {0};
        for (uint32_t tap = 0; tap < tap_count; tap++) {
            for (size_t i = 0; i < count; i++) {
                sums[i] += weights[tap] * rows[tap][at + i];
            }
        }
        for (size_t i = 0; i < count; i++) {
            out[at + i] = finish(sums[i]);
        }
    }
}

const struct resize_path resize_path_scalar = {"scalar", horizontal_scalar, vertical_scalar};

bool resize_path_usable(const struct resize_path *path)
{
    if (path == &resize_path_avx512) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    }
    return path == &resize_path_scalar || (path == &resize_path_avx2 && __builtin_cpu_supports("avx2"));
}

const struct resize_path *resize_path_best(void)
{
    if (resize_path_usable(&resize_path_avx512)) {
        return &resize_path_avx512;
    }
    return resize_path_usable(&resize_path_avx2) ? &resize_path_avx2 : &resize_path_scalar;
}

struct resizing {
    const struct resize_path *path;
    const unsigned char *source;
    size_t source_row_bytes;
    uint32_t source_height;
    size_t row_bytes;          /* of the output */
    struct resize_axis across; /* out_count 0: the width stays */
    unsigned char *ring;
    size_t ring_row_bytes;
    uint32_t ring_slots;
    uint32_t next_row; /* first source row that is not in the ring yet */
};

/* Narrows RESIZE_ROWS source rows from `row` on; `outs` are the places of those that exist. */
static void narrow_rows(const struct resizing *resizing, uint32_t row, unsigned char *outs[RESIZE_ROWS])
{
    const unsigned char *sources[RESIZE_ROWS];

    assert(row < resizing->source_height);
    for (uint32_t i = 0; i < RESIZE_ROWS; i++) {
        uint32_t last = resizing->source_height - 1 - row;
        sources[i] = resizing->source + (size_t)(row + (i < last ? i : last)) * resizing->source_row_bytes;
        outs[i] = outs[i < last ? i : last];
    }
    resizing->path->horizontal(sources, outs, &resizing->across);
}

static const unsigned char *row_at(const struct resizing *resizing, uint32_t row)
{
    if (resizing->across.out_count == 0) {
        return resizing->source + row * resizing->source_row_bytes;
    }
    assert(row < resizing->next_row);
    return resizing->ring + row % resizing->ring_slots * resizing->ring_row_bytes;
}

static void fill_ring(struct resizing *resizing, uint32_t end)
{
    while (resizing->across.out_count > 0 && resizing->next_row < end) {
        unsigned char *outs[RESIZE_ROWS];
        for (uint32_t i = 0; i < RESIZE_ROWS; i++) {
            outs[i] = resizing->ring + (resizing->next_row + i) % resizing->ring_slots * resizing->ring_row_bytes;
        }
        narrow_rows(resizing, resizing->next_row, outs);
        resizing->next_row += RESIZE_ROWS;
    }
}

static bool is_set(const atomic_bool *is_cancelled)
{
    return is_cancelled != NULL && atomic_load_explicit(is_cancelled, memory_order_relaxed);
}

/* The height stays: narrowed rows are the result. */
static bool resize_across(const struct resizing *resizing, unsigned char *out, const atomic_bool *is_cancelled)
{
    for (uint32_t row = 0; row < resizing->source_height; row += RESIZE_ROWS) {
        unsigned char *outs[RESIZE_ROWS];
        if (is_set(is_cancelled)) {
            return false;
        }
        for (uint32_t i = 0; i < RESIZE_ROWS; i++) {
            uint32_t last = resizing->source_height - 1 - row;
            outs[i] = out + (size_t)(row + (i < last ? i : last)) * resizing->row_bytes;
        }
        narrow_rows(resizing, row, outs);
    }
    return true;
}

static bool resize_down(struct resizing *resizing, unsigned char *out, uint32_t height, struct jmem *work,
                        const atomic_bool *is_cancelled)
{
    struct resize_axis down;
    open_axis(&down, resizing->source_height, height, work);
    const unsigned char **rows = take(work, down.tap_stride * sizeof *rows);

    for (uint32_t y = 0; y < height; y++) {
        uint32_t tap_count = down.tap_counts[y], last = down.first[y] + tap_count - 1;
        if (is_set(is_cancelled)) {
            return false;
        }
        fill_ring(resizing, last + 1);
        for (uint32_t tap = 0; tap < tap_count; tap++) {
            rows[tap] = row_at(resizing, down.first[y] + tap);
        }
        if (tap_count % 2 != 0) {
            rows[tap_count] = rows[tap_count - 1]; /* weighs 0: the stride is even and longer */
            tap_count++;
        }
        resizing->path->vertical(rows, down.weights + (size_t)y * down.tap_stride, tap_count, resizing->row_bytes,
                                 out + y * resizing->row_bytes);
    }
    return true;
}

bool resize_bicubic(const struct resize_path *path, const unsigned char *source, uint32_t source_width,
                    uint32_t source_height, unsigned char *out, uint32_t width, uint32_t height, struct jmem *work,
                    const atomic_bool *is_cancelled)
{
    assert(source_width > 0 && source_height > 0 && width > 0 && height > 0);
    assert(resize_path_usable(path));
    struct resizing resizing = {
        .path = path,
        .source = source,
        .source_row_bytes = (size_t)source_width * CHANNELS,
        .source_height = source_height,
        .row_bytes = (size_t)width * CHANNELS,
    };

    if (source_width == width && source_height == height) {
        memcpy(out, source, resizing.row_bytes * height);
        return true;
    }
    if (source_width != width) {
        open_axis(&resizing.across, source_width, width, work);
    }
    if (source_height == height) {
        return resize_across(&resizing, out, is_cancelled);
    }
    if (source_width != width) {
        resizing.ring_slots = ring_slots(source_height, height);
        resizing.ring_row_bytes = ring_row_bytes(width);
        resizing.ring = take(work, resizing.ring_row_bytes * resizing.ring_slots);
    }
    return resize_down(&resizing, out, height, work, is_cancelled);
}
