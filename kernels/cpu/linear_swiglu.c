/* linear_swiglu: two products of the same inputs; gate and up meet in the worker's memory and never reach the main one.
 */
#include "kernels/cpu/product.h"

struct swiglu_job {
    const struct linear_swiglu_args *args;
    void *workspace;
    struct product_cut cut;
};

static const float *bias_at(const float *bias, uint32_t first)
{
    return bias != NULL ? bias + first : NULL;
}

static void swiglu_tile(void *ctx, uint32_t tile_index, uint32_t worker_index)
{
    const struct swiglu_job *job = ctx;
    const struct linear_swiglu_args *args = job->args;
    const struct packed_matrix *matrices[] = {args->gate, args->up};
    enum kernel_type type = args->gate->type;
    struct product_tile tile = product_tile_at(&job->cut, tile_index, job->workspace, worker_index);

    product_run(&tile, args->in, args->in_stride, matrices, 2);
    for (size_t r = 0; r < tile.row_count; r++) {
        size_t first = (tile.row_first + r) * args->out_stride + tile.out_first;
        cpu_kernels->finish_swiglu(cpu_at_out(args->out, type, first), type, tile.sums[0] + r * tile.sum_stride,
                                   tile.sums[1] + r * tile.sum_stride, bias_at(args->gate_bias, tile.out_first),
                                   bias_at(args->up_bias, tile.out_first), tile.out_count);
    }
}

void cpu_linear_swiglu(const void *arguments, struct team *team, void *workspace)
{
    const struct linear_swiglu_args *args = arguments;
    struct swiglu_job job = {args, workspace, {0}};

    if (args->rows > 0) {
        job.cut = product_cut_for(args->rows, args->gate->out, 2, team->worker_count);
        cpu_tiles(team, swiglu_tile, &job, job.cut.tile_count,
                  (uint64_t)args->rows * args->gate->in * args->gate->out * 2);
    }
}
