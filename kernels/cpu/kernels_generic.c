/* kernels_generic: the inner kernels in plain C. */
#define KERNELS_NAME cpu_kernels_generic
#define MICRO_ROWS   2
#define MICRO_BLOCKS 1
#include "kernels/cpu/kernel_body.h"
