/* team: the team of one, for tests and tools.
 *
 * Always true: it has no state; tiles run in ascending order on the calling thread.
 */
#include "kernels/team.h"

#include <assert.h>

static void run_serially(struct team *team, team_tile *tile, void *ctx, uint32_t tile_count)
{
    assert(team->worker_count == 1);

    for (uint32_t i = 0; i < tile_count; i++) {
        tile(ctx, i, 0);
    }
}

struct team team_serial = {.worker_count = 1, .run = run_serially};
