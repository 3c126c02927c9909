#define TRAINWRIGHT_UPDATE UpdateBf16MomentsBaseline
#include "lib/nn/cpu/bf16_moments_body.h"
