/* linear: a product, then bias and rounding. */
#include "kernels/cpu/linear.h"

struct linear_job {
    const struct linear_args *args;
    void *workspace;
    enum finish finish;
    struct product_cut cut;
};

static void linear_tile(void *ctx, uint32_t tile_index, uint32_t worker_index)
{
    const struct linear_job *job = ctx;
    const struct linear_args *args = job->args;
    struct product_tile tile = product_tile_at(&job->cut, tile_index, job->workspace, worker_index);
    const float *bias = args->bias != NULL ? args->bias + tile.out_first : NULL;

    product_run(&tile, args->in, args->in_stride, &args->weight, 1);
    for (size_t r = 0; r < tile.row_count; r++) {
        size_t first = (tile.row_first + r) * args->out_stride + tile.out_first;
        cpu_kernels->finish(cpu_at_out(args->out, args->out_type, first), job->finish,
                            tile.sums[0] + r * tile.sum_stride, bias, tile.out_count);
    }
}

void linear_run(const struct linear_args *args, enum finish finish, struct team *team, void *workspace)
{
    struct linear_job job = {args, workspace, finish, {0}};

    if (args->rows > 0) {
        job.cut = product_cut_for(args->rows, args->weight->out, 1, team->worker_count);
        cpu_tiles(team, linear_tile, &job, job.cut.tile_count,
                  (uint64_t)args->rows * args->weight->in * args->weight->out);
    }
}

void cpu_linear(const void *arguments, struct team *team, void *workspace)
{
    const struct linear_args *args = arguments;

    linear_run(args, args->out_type == TYPE_F32 ? FINISH_F32 : FINISH_BF16, team, workspace);
}
