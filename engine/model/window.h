/* window: the order in which the vision tower walks a picture's merged tokens, and its windows. Spec §3.2. */
#ifndef MODEL_WINDOW_H
#define MODEL_WINDOW_H

#include <stdint.h>

/* Windows of a picture of height x width merged tokens; `side` is a window's edge in merged tokens. */
uint32_t window_count(uint32_t height, uint32_t width, uint32_t side);

/* order[i] is the raster number of the token that stands at place i; window k holds places bounds[k] .. bounds[k+1]-1.
 * `order` has height * width entries, `bounds` window_count + 1. */
void window_order(uint32_t height, uint32_t width, uint32_t side, uint32_t *order, uint32_t *bounds);

#endif
