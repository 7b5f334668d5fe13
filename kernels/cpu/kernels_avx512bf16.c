/* kernels_avx512bf16: the inner kernels for AVX-512 with dot products of bf16 pairs. */
#define KERNELS_NAME cpu_kernels_avx512bf16
#define MICRO_ROWS   6 /* 24 of the 32 registers hold sums */
#define MICRO_BLOCKS 4
#include "kernels/cpu/kernel_body.h"
