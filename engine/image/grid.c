/* grid: from a picture's size to the size it is resized to, its patch grid and its tokens.
 *
 * The order of the double operations is the published processor's; another order flips a floor somewhere.
 */
#include "engine/image/grid.h"

#include <assert.h>
#include <math.h>

static uint32_t edge_unit(const struct image_rules *rules)
{
    assert(rules->patch > 0 && rules->merge > 0);
    assert(rules->min_pixels > 0 && rules->min_pixels <= rules->max_pixels);
    return rules->patch * rules->merge;
}

/* The edge when the area is too large: rounded down, but at least one unit. */
static double shrink(double edge, double beta, double unit)
{
    double shrunk = floor(edge / beta / unit) * unit;

    return shrunk > unit ? shrunk : unit;
}

enum err grid_fit(uint32_t width, uint32_t height, const struct image_rules *rules, struct image_grid *grid,
                  const char **reason)
{
    assert(width > 0 && height > 0);
    double unit = edge_unit(rules), w = width, h = height;
    double low = (double)rules->min_pixels, high = (double)rules->max_pixels;

    if ((w > h ? w / h : h / w) > GRID_RATIO_MAX) {
        *reason = "aspect ratio above 200";
        return ERR_BAD_IMAGE;
    }
    /* nearbyint: ties to even in the rounding mode that C programs start in. */
    double fit_h = nearbyint(h / unit) * unit, fit_w = nearbyint(w / unit) * unit;
    if (fit_h * fit_w > high) {
        double beta = sqrt(h * w / high);
        fit_h = shrink(h, beta, unit);
        fit_w = shrink(w, beta, unit);
    } else if (fit_h * fit_w < low) {
        double beta = sqrt(low / (h * w));
        fit_h = ceil(h * beta / unit) * unit;
        fit_w = ceil(w * beta / unit) * unit;
    }
    assert(fit_h >= unit && fit_w >= unit);
    assert(fit_h * fit_w <= (double)grid_pixels_max(rules));

    grid->width = (uint32_t)fit_w;
    grid->height = (uint32_t)fit_h;
    grid->grid_w = grid->width / rules->patch;
    grid->grid_h = grid->height / rules->patch;
    grid->token_count = grid->grid_w / rules->merge * (grid->grid_h / rules->merge);
    return ERR_OK;
}

/* Three ways to a result (u = unit, ratio r <= 200):
 * - neither rule: at most max_pixels.
 * - shrunk: both edges rounded down: at most max_pixels; or the short one lifted to u, and the long one
 *   floor(sqrt(max r) / u) u.
 * - grown: edges sqrt(min r) and sqrt(min / r), each less than u longer:
 *   min + u sqrt(min) (sqrt(r) + 1/sqrt(r)) + u^2, largest at r = 200. */
uint64_t grid_pixels_max(const struct image_rules *rules)
{
    double unit = edge_unit(rules), ratio = sqrt((double)GRID_RATIO_MAX);
    double low_root = sqrt((double)rules->min_pixels), high_root = sqrt((double)rules->max_pixels);
    double thin = unit * floor(high_root * ratio / unit + 1) * unit;
    double grown = (double)rules->min_pixels + unit * low_root * (ratio + 1 / ratio) + unit * unit;
    double most = (double)rules->max_pixels;

    most = thin > most ? thin : most;
    most = grown > most ? grown : most;
    return (uint64_t)ceil(most / (unit * unit)) * (uint64_t)(unit * unit);
}

uint32_t grid_tokens_max(const struct image_rules *rules)
{
    uint64_t unit = edge_unit(rules);
    uint64_t token_count = grid_pixels_max(rules) / (unit * unit);

    assert(token_count <= UINT32_MAX);
    return (uint32_t)token_count;
}
