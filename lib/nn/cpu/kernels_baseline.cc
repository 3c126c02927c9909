#define TRAINWRIGHT_KERNELS kBaselineKernels
#define TRAINWRIGHT_KERNELS_NAME "baseline"
#define TRAINWRIGHT_VECTOR_BYTES 16
#define TRAINWRIGHT_BEGIN_TARGET
#define TRAINWRIGHT_END_TARGET
#include "lib/nn/cpu/kernels_body.h"
