#define TRAINWRIGHT_UPDATE UpdateBf16MomentsBaseline
#include "lib/nn/update/bf16_moments_body.h"
