/* kernels_avx512: the inner kernels for AVX-512 F, BW, VL and DQ; bf16 weights are widened. */
#define KERNELS_NAME cpu_kernels_avx512
#define MICRO_ROWS   6 /* 24 of the 32 registers hold sums */
#define MICRO_BLOCKS 4
#include "kernels/cpu/kernel_body.h"
