/* position: M-RoPE positions (t, h, w) of a sequence with pictures in it. Spec §5. */
#ifndef MODEL_POSITION_H
#define MODEL_POSITION_H

#include <stdint.h>

/* The tokens of one picture: index of the first, and the grid of merged tokens. */
struct position_span {
    uint32_t first, height, width;
};

/* Fills the positions of tokens first .. first+count-1. Any piece of the sequence may be asked for by itself, generated
 * tokens included; `spans` are the pictures of the whole sequence, ascending, without overlap. */
void position_fill(const struct position_span *spans, uint32_t span_count, uint32_t first, uint32_t count,
                   int32_t (*positions)[3]);

/* What a token behind the last picture adds to its index: 0 without pictures. */
int32_t position_delta(const struct position_span *spans, uint32_t span_count);

#endif
