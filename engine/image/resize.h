/* resize: bicubic resampling of packed 8-bit RGB, bit for bit as Pillow does it, horizontal pass first.
 *
 * Formula (spec-qwen-vl.md section 2), for one axis from n to k samples, s = n/k, g = max(s, 1), c = (i + 0.5) s:
 *     out[i] = clamp((2^21 + sum_j w[i][j] in[j]) >> 22),  w[i][j] = round(2^22 B((j - c + 0.5) / g) / sum_j B(...))
 * and 8 bits between the passes. All paths give the same bytes: sums are exact modulo 2^32.
 */
#ifndef ENGINE_IMAGE_RESIZE_H
#define ENGINE_IMAGE_RESIZE_H

#include "engine/image/jmem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RESIZE_WEIGHT_BITS = 22, /* fraction bits of a weight */
    RESIZE_SPLIT_BITS = 14,  /* vector paths: weight = high * 2^14 + low, both 16 bits wide */
    RESIZE_ROWS = 4,         /* rows a call of the horizontal pass */
    RESIZE_OVERREAD_BYTES = 64,
};

/* The weights of one axis. Taps beyond an output's own, up to the stride, weigh 0. */
struct resize_axis {
    uint32_t out_count;
    uint32_t tap_stride;  /* a multiple of 4 */
    uint32_t *first;      /* [out_count] index of the first input */
    uint32_t *tap_counts; /* [out_count] */
    int32_t *weights;     /* [out_count][tap_stride] */
};

/* One implementation of the two passes. */
struct resize_path {
    const char *name;
    /* RESIZE_ROWS rows of pixels: outs[r], [axis->out_count][3], from sources[r]. May read (not use) up to
     * RESIZE_OVERREAD_BYTES behind a source row; writes nothing behind an output row. Rows may be given twice. */
    void (*horizontal)(const unsigned char *const *sources, unsigned char *const *outs, const struct resize_axis *axis);
    /* out[b] for b < row_bytes from the same byte of rows[0 .. tap_count-1]; tap_count is even (the last weight may
     * be 0). May read up to RESIZE_OVERREAD_BYTES behind a row. */
    void (*vertical)(const unsigned char *const *rows, const int32_t *weights, uint32_t tap_count, size_t row_bytes,
                     unsigned char *out);
};

extern const struct resize_path resize_path_scalar, resize_path_avx2, resize_path_avx512;

/* The fastest path that this machine can run; the other way round, whether it can run `path`. */
const struct resize_path *resize_path_best(void);
bool resize_path_usable(const struct resize_path *path);

/* What resize_bicubic takes from its region: tables, and the rows between the passes that are needed at once. */
size_t resize_work_bytes(uint32_t source_width, uint32_t source_height, uint32_t width, uint32_t height);

/* Resizes `source`, uint8 [source_height][source_width][3], with RESIZE_OVERREAD_BYTES readable behind it, into `out`,
 * uint8 [height][width][3]. All edges are at least 1. Takes resize_work_bytes() from `work` (asserted: planned).
 * False if is_cancelled (NULL: never) was seen, before each row; then `out` is unfinished. */
bool resize_bicubic(const struct resize_path *path, const unsigned char *source, uint32_t source_width,
                    uint32_t source_height, unsigned char *out, uint32_t width, uint32_t height, struct jmem *work,
                    const atomic_bool *is_cancelled);

#endif
