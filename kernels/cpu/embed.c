/* embed: rows gathered out of the packed table, whose lanes are rows: every pair of a row lies in a line of its own. */
#include "kernels/bf16.h"
#include "kernels/cpu/cpu.h"

static void gather(float *out, const struct packed_matrix *table, uint32_t id)
{
    uint32_t width = table->in, lane = id % PACK_OUT;
    size_t block = (size_t)(id / PACK_OUT) * PACK_OUT * width;

    if (table->type == TYPE_F32) {
        const float *in = (const float *)table->data + block + lane;
        for (uint32_t i = 0; i < width; i++) {
            out[i] = in[(size_t)i * PACK_OUT];
        }
        return;
    }
    const uint16_t *in = (const uint16_t *)table->data + block + (size_t)lane * 2;
    for (uint32_t i = 0; i < width; i += 2) {
        out[i] = bf16_widen(in[(size_t)i * PACK_OUT]);
        out[i + 1] = bf16_widen(in[(size_t)i * PACK_OUT + 1]);
    }
}

static void embed_rows(const void *arguments, uint32_t first, uint32_t end)
{
    const struct embed_args *args = arguments;
    uint32_t width = args->table->in;

    for (uint32_t r = first; r < end; r++) {
        const void *feature = args->features != NULL ? args->features[r] : NULL;
        float *out = args->out + (size_t)r * width;
        if (feature == NULL) {
            gather(out, args->table, (uint32_t)args->ids[r]);
        } else if (args->table->type == TYPE_F32) {
            memcpy(out, feature, width * sizeof *out);
        } else {
            cpu_kernels->widen(out, feature, width);
        }
    }
}

void cpu_embed(const void *arguments, struct team *team, void *workspace)
{
    const struct embed_args *args = arguments;

    (void)workspace;
    cpu_rows(team, embed_rows, args, args->rows, (uint64_t)args->table->in * 8);
}
