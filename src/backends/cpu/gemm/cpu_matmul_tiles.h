/* cpu_matmul_tiles.h - makers of products of bf16 by tiles; they take nothing where there are none. */
#ifndef CPU_MATMUL_TILES_H
#define CPU_MATMUL_TILES_H

#include "backends/cpu/cpu_own.h"

MAKER(make_matmul_tiles);
MAKER(make_matmul_weight_gradient_tiles);
MAKER(make_attention_tiles);
MAKER(make_attention_gradient_tiles);
MAKER(make_vocabulary_tiles);
MAKER(make_vocabulary_gradient_tiles);
MAKER(make_convolution_tiles);
MAKER(make_convolution_input_gradient_tiles);
MAKER(make_convolution_weight_gradient_tiles);

#endif
