/* patchify, the oracle: every element finds its own pixel. Spec §2, "Patch order". */
#include "kernels/implementations.h"
#include "kernels/ref/operand.h"

static double pixel(const struct patchify_args *args, size_t row, uint32_t column)
{
    uint32_t patch = args->patch, merge = args->merge;
    size_t group = row / (merge * merge), inside = row % (merge * merge), groups_wide = args->grid_w / merge;

    if (args->order != NULL) {
        group = args->order[group];
    }
    size_t patch_y = group / groups_wide * merge + inside / merge,
           patch_x = group % groups_wide * merge + inside % merge;
    uint32_t px = column % patch, py = column / patch % patch, channel = column / (patch * patch * args->frames);
    size_t y = patch_y * patch + py, x = patch_x * patch + px;

    return args->normalize[channel][args->rgb[(y * args->grid_w * patch + x) * 3 + channel]];
}

void ref_patchify(const void *arguments)
{
    const struct patchify_args *args = arguments;
    uint32_t width = 3 * args->frames * args->patch * args->patch;

    for (size_t r = 0; r < args->rows; r++) {
        for (uint32_t column = 0; column < width; column++) {
            operand_put(args->out, args->out_type, r * width + column, pixel(args, args->row_first + r, column));
        }
    }
}
