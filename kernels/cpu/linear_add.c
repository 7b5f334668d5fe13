/* linear_add: a product, then bias, then the residual. */
#include "kernels/cpu/linear.h"

void cpu_linear_add(const void *arguments, struct team *team, void *workspace)
{
    linear_run(arguments, FINISH_ADD, team, workspace);
}
