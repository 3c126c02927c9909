#include "lib/nn/activation/dropout.h"

#include <algorithm>
#include <cstring>

#include "lib/base/error.h"
#include "lib/base/profile_scope.h"
#include "lib/nn/activation/dropout_factors.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/ops.h"

namespace trainwright {
namespace {

constexpr int64_t kPiece = 1024;  // elements, on the stack

}  // namespace

void Dropout(const Numerics& numerics, uint64_t key, const at::Tensor& rows_n, double probability,
             const at::Tensor& x, at::Tensor& out) {
  const ProfileScope scope("dropout", ProfilePart::kActivation);
  TRAINWRIGHT_CHECK(x.is_contiguous() && out.is_contiguous() && x.sizes() == out.sizes());
  TRAINWRIGHT_CHECK(rows_n.is_contiguous() && rows_n.numel() == x.size(0));
  if (x.is_meta()) return;
  if (!x.is_cpu()) {
    return ops::Dropout(x, rows_n, static_cast<int64_t>(key), probability, numerics.code(), out);
  }
  const uint32_t threshold = DropoutThreshold(probability);
  const cpu::Codec codec = cpu::CodecOf(numerics);
  const bool bf16 = codec == cpu::Codec::kBf16;
  const int64_t width = x.size(1), pairs = (width + 1) / 2;
  const float scale = DropoutScale(probability);
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
