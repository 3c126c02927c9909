// The turn of rotary positions, of pairs in registers.
#pragma once

namespace trainwright::cuda {

/// Turns the pairs (a[k], b[k]) by angles of these cosines and sines, or the other way.
/// \param sign 1, or -1 for gradients
template <int N>
__device__ inline void TurnPairs(const float (&cosine)[N], const float (&sine)[N], float sign, float (&a)[N],
                                 float (&b)[N]) {
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const float s = sign * sine[k], turned = a[k] * cosine[k] - b[k] * s;
    b[k] = b[k] * cosine[k] + a[k] * s;
    a[k] = turned;
  }
}

}  // namespace trainwright::cuda
