#define TRAINWRIGHT_BEGIN_TARGET
#define TRAINWRIGHT_END_TARGET
#include "lib/codec/cpu/kernels_body.h"

namespace trainwright::codec {

const Kernels kBaselineKernels = {"baseline",
                                  Split,
                                  Merge,
                                  Hash,
                                  Histogram,
                                  MarkPresentScalar,
                                  RansEncodeScalar,
                                  RansDecodeScalar,
                                  true,
                                  Exponents,
                                  AddExponents,
                                  Predict,
                                  Unpredict,
                                  Subtract,
                                  Add};

}  // namespace trainwright::codec
