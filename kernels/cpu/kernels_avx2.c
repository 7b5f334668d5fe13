/* kernels_avx2: the inner kernels for AVX2 and FMA. */
#define KERNELS_NAME cpu_kernels_avx2
#define MICRO_ROWS   4 /* 8 of the 16 registers hold sums */
#define MICRO_BLOCKS 1
#include "kernels/cpu/kernel_body.h"
