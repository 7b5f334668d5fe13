/* linear: what linear and linear_add share. */
#ifndef KERNELS_CPU_LINEAR_H
#define KERNELS_CPU_LINEAR_H

#include "kernels/cpu/product.h"

void linear_run(const struct linear_args *args, enum finish finish, struct team *team, void *workspace);

#endif
