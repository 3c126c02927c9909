/// lib/nn/activation/dropout.h by torch's operators, which compute in another order what its kernels do.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>

#include <cstdint>

#include "lib/nn/activation/dropout.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/precision.h"

namespace trainwright::test {

inline int64_t Signed(uint64_t bits) {
  return static_cast<int64_t>(bits);
}

/// Logical shift of what torch takes for signed.
inline at::Tensor ShiftRight(const at::Tensor& bits, int64_t by) {
  return bits.__rshift__(by).__and__((int64_t{1} << (64 - by)) - 1);
}

/// Mix64 of lib/base/rng.h.
inline at::Tensor Mix(at::Tensor bits) {
  bits = bits.add(Signed(0x9E3779B97F4A7C15u));
  bits = bits.__xor__(ShiftRight(bits, 30)).mul(Signed(0xBF58476D1CE4E5B9u));
  bits = bits.__xor__(ShiftRight(bits, 27)).mul(Signed(0x94D049BB133111EBu));
  return bits.__xor__(ShiftRight(bits, 31));
}

inline void DropoutByTorch(const Numerics& numerics, uint64_t key, const at::Tensor& rows_n,
                           double probability, const at::Tensor& x, at::Tensor& out) {
  const uint32_t threshold = DropoutThreshold(probability);
  const int64_t rows = x.size(0), width = x.size(1), pairs = (width + 1) / 2;
  const at::Tensor counters =
      rows_n.mul(pairs).unsqueeze(1).add(at::arange(pairs, rows_n.options())).flatten();
  const at::Tensor bits =
      Mix(Mix(counters.mul(Signed(0x9E3779B97F4A7C15u)).add(Signed(key))).__xor__(Signed(key)));
  const at::Tensor halves = at::stack({bits.__and__(0xFFFFFFFF), ShiftRight(bits, 32)}, 1)
                                .view({rows, 2 * pairs})
                                .narrow(1, 0, width);
  const at::Tensor kept = halves.ge(static_cast<int64_t>(threshold)).to(at::kFloat);
  const at::Tensor scaled = x.to(at::kFloat).mul(kept).mul(static_cast<float>(1.0 / (1.0 - probability)));
  if (numerics.emulated()) {
    RoundInto(numerics, scaled, out);
  } else {
    out.copy_(scaled);
  }
}

}  // namespace trainwright::test
