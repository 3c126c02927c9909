#include "lib/nn/activation/dropout.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cstring>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/activation/dropout_factors.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/cpu/parallel.h"

namespace trainwright {
namespace {

constexpr int64_t kPiece = 1024;  // elements, on the stack

int64_t Signed(uint64_t bits) {
  return static_cast<int64_t>(bits);
}

/// Logical shift of what torch takes for signed.
at::Tensor ShiftRight(const at::Tensor& bits, int64_t by) {
  return bits.__rshift__(by).__and__((int64_t{1} << (64 - by)) - 1);
}

/// Mix64 of lib/base/rng.h.
at::Tensor Mix(at::Tensor bits) {
  bits = bits.add(Signed(0x9E3779B97F4A7C15u));
  bits = bits.__xor__(ShiftRight(bits, 30)).mul(Signed(0xBF58476D1CE4E5B9u));
  bits = bits.__xor__(ShiftRight(bits, 27)).mul(Signed(0x94D049BB133111EBu));
  return bits.__xor__(ShiftRight(bits, 31));
}

/// Bits below it drop an element.
uint32_t ThresholdOf(double probability) {
  return static_cast<uint32_t>(probability * 0x1p32);
}

}  // namespace

void DropoutByTorch(const Numerics& numerics, uint64_t key, const at::Tensor& rows_n, double probability,
                    const at::Tensor& x, at::Tensor& out) {
  const uint32_t threshold = ThresholdOf(probability);
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

void Dropout(const Numerics& numerics, uint64_t key, const at::Tensor& rows_n, double probability,
             const at::Tensor& x, at::Tensor& out) {
  const ProfileScope scope("dropout", ProfilePart::kActivation);
  TRAINWRIGHT_CHECK(x.is_contiguous() && out.is_contiguous() && x.sizes() == out.sizes());
  TRAINWRIGHT_CHECK(rows_n.is_contiguous() && rows_n.numel() == x.size(0));
  if (x.is_meta()) return;
  if (!x.is_cpu()) return DropoutByTorch(numerics, key, rows_n, probability, x, out);
  const uint32_t threshold = ThresholdOf(probability);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const bool bf16 = codec == cpu::Codec::kBf16;
  const int64_t width = x.size(1), pairs = (width + 1) / 2;
  const auto scale = static_cast<float>(1.0 / (1.0 - probability));
  const auto* rows = rows_n.const_data_ptr<int64_t>();
  const void* in = x.const_data_ptr();
  void* to = out.mutable_data_ptr();
  cpu::ParallelRows(x.size(0), 4 * width, [&](int64_t begin, int64_t end) {
    float factors[kPiece], values[kPiece];
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t column = 0; column < width; column += kPiece) {
        const int64_t size = std::min(kPiece, width - column), at = row * width + column;
        const uint64_t first = static_cast<uint64_t>(rows[row]) * static_cast<uint64_t>(pairs);
        cpu::DropoutFactors(key, first + static_cast<uint64_t>(column / 2), (size + 1) / 2, threshold, scale,
                            factors);
        if (bf16) {
          const uint16_t* stored = static_cast<const uint16_t*>(in) + at;
          for (int64_t i = 0; i < size; ++i) {
            const uint32_t bits = static_cast<uint32_t>(stored[i]) << 16;
            std::memcpy(&values[i], &bits, sizeof(bits));
          }
        } else {
          std::memcpy(values, static_cast<const float*>(in) + at, static_cast<size_t>(size) * sizeof(float));
        }
        for (int64_t i = 0; i < size; ++i) values[i] *= factors[i];
        void* piece = bf16 ? static_cast<void*>(static_cast<uint16_t*>(to) + at)
                           : static_cast<void*>(static_cast<float*>(to) + at);
        cpu::BestKernels().round(codec, values, piece, 0, size);
      }
    }
  });
}

}  // namespace trainwright
