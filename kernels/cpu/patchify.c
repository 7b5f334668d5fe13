/* patchify: one patch's line of one channel at a time; the second frame is a copy of the first. */
#include "kernels/bf16.h"
#include "kernels/cpu/cpu.h"

/* The top left pixel of the patch in row `row` of the tower's order. */
static const uint8_t *patch_corner(const struct patchify_args *args, size_t row)
{
    uint32_t merge = args->merge, groups_wide = args->grid_w / merge;
    size_t group = row / (merge * merge), inside = row % (merge * merge);

    if (args->order != NULL) {
        group = args->order[group];
    }
    size_t y = group / groups_wide * merge + inside / merge, x = group % groups_wide * merge + inside % merge;
    return args->rgb + (y * args->patch * args->grid_w + x) * args->patch * 3;
}

/* One channel's frame: patch * patch elements. */
static void put_frame(void *out, enum kernel_type type, const uint8_t *pixel, size_t line_bytes, uint32_t patch,
                      const float *normalize)
{
    for (uint32_t y = 0; y < patch; y++, pixel += line_bytes) {
        for (uint32_t x = 0; x < patch; x++) {
            float value = normalize[pixel[(size_t)x * 3]];
            if (type == TYPE_F32) {
                ((float *)out)[y * patch + x] = value;
            } else {
                ((uint16_t *)out)[y * patch + x] = bf16_narrow(value);
            }
        }
    }
}

static void patchify_rows(const void *arguments, uint32_t first, uint32_t end)
{
    const struct patchify_args *args = arguments;
    uint32_t area = args->patch * args->patch;
    size_t width = (size_t)3 * args->frames * area, line_bytes = (size_t)args->grid_w * args->patch * 3;
    size_t frame_bytes = area * kernel_type_bytes(args->out_type);

    for (size_t r = first; r < end; r++) {
        const uint8_t *corner = patch_corner(args, args->row_first + r);
        for (size_t channel = 0; channel < 3; channel++) {
            unsigned char *out = cpu_at_out(args->out, args->out_type, r * width + channel * args->frames * area);
            put_frame(out, args->out_type, corner + channel, line_bytes, args->patch, args->normalize[channel]);
            for (size_t f = 1; f < args->frames; f++) {
                memcpy(out + f * frame_bytes, out, frame_bytes);
            }
        }
    }
}

void cpu_patchify(const void *arguments, struct team *team, void *workspace)
{
    const struct patchify_args *args = arguments;

    (void)workspace;
    cpu_rows(team, patchify_rows, args, args->rows, (uint64_t)6 * args->frames * args->patch * args->patch);
}
