#include "lib/nn/linear/nf4.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lib/base/error.h"
#include "lib/nn/activation/elementwise.h"
#include "lib/nn/cpu/parallel.h"
#include "lib/nn/linear/nf4_block.h"
#include "lib/nn/ops.h"

namespace trainwright {
namespace {

constexpr int64_t kPiece = 16 * kNf4Block;  // elements dequantised at once, on the stack

/// Index of the nearest value; of two as near, the smaller.
/// \param book ascending
template <size_t kSize>
uint8_t Nearest(std::span<const float, kSize> book, float value) {
  const auto above = std::upper_bound(book.begin(), book.end(), value);
  if (above == book.begin()) return 0;
  if (above == book.end()) return static_cast<uint8_t>(book.size() - 1);
  const auto index = static_cast<size_t>(above - book.begin());
  return static_cast<uint8_t>(value <= (book[index - 1] + book[index]) / 2 ? index - 1 : index);
}

/// Those of the code book for values * factor, as Nearest has them: how many of the middles between two
/// values of the book are below. Loops of one shape, so that the compiler can use vectors.
void NearestCodes(const float* values, int64_t size, float factor, int32_t* codes) {
  const std::span<const float, 16> book = Nf4CodeBook();
  float scaled[kNf4Block] = {};
  int32_t counts[kNf4Block] = {};
  for (int64_t i = 0; i < size; ++i) scaled[i] = values[i] * factor;
  for (size_t k = 0; k + 1 < book.size(); ++k) {
    const float middle = (book[k] + book[k + 1]) / 2;
    for (int64_t i = 0; i < kNf4Block; ++i) counts[i] += scaled[i] <= middle ? 0 : 1;
  }
  std::copy_n(counts, size, codes);
}

/// NaN where a value is not finite, so that the block reads as NaN.
float LargestMagnitude(const float* values, int64_t size) {
  float largest = 0;
  int others = 0;
  for (int64_t i = 0; i < size; ++i) {
    const float magnitude = std::fabs(values[i]);
    largest = std::max(largest, magnitude);
    others |= magnitude <= std::numeric_limits<float>::max() ? 0 : 1;
  }
  return others == 0 ? largest : std::numeric_limits<float>::quiet_NaN();
}

int64_t Blocks(int64_t size, int64_t block) {
  return (size + block - 1) / block;
}

struct Nf4Parts {
  const uint8_t* codes;
  int64_t code_bytes;
  const uint8_t* scales;
  const float* scale_magnitudes;
  float mean;
};

/// Elements from `first` on, wherever in a block that is.
void ReadElements(const Nf4Parts& parts, int64_t first, int64_t size, float* out) {
  const std::span<const float, 256> map = DynamicMap();
  const float* book = Nf4CodeBook().data();
  for (int64_t i = first; i < first + size;) {
    const int64_t block = i / kNf4Block, skipped = i % kNf4Block;
    const int64_t count = std::min(kNf4Block - skipped, first + size - i);
    const float scaled = map[parts.scales[block]] * parts.scale_magnitudes[block / kNf4ScaleBlock];
    const float magnitude = scaled + parts.mean;
    const uint8_t* codes = parts.codes + block * kNf4Block / 2;
    if (skipped == 0) {
      cpu::DequantizeNf4Block(codes, count, book, magnitude, out + (i - first));
    } else {
      float whole[kNf4Block];
      const int64_t present = std::min(kNf4Block, 2 * parts.code_bytes - block * kNf4Block);
      cpu::DequantizeNf4Block(codes, present, book, magnitude, whole);
      std::copy_n(whole + skipped, count, out + (i - first));
    }
    i += count;
  }
}

}  // namespace

Nf4Tensor::Nf4Tensor(int64_t size, at::Device device) : size_(size) {
  const int64_t blocks = Blocks(size, kNf4Block);
  const auto bytes = at::TensorOptions().dtype(at::kByte).device(device);
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(device);
  codes_ = at::full({Blocks(size, 2)}, 0x77, bytes);
  scales_ = at::zeros({blocks}, bytes);
  scale_magnitudes_ = at::zeros({Blocks(blocks, kNf4ScaleBlock)}, floats);
  mean_ = at::zeros({1}, floats);
}

int64_t Nf4Tensor::bytes() const {
  return static_cast<int64_t>(codes_.nbytes() + scales_.nbytes() + scale_magnitudes_.nbytes() +
                              mean_.nbytes());
}

void Nf4Tensor::Quantize(const at::Tensor& values) {
  TRAINWRIGHT_CHECK(values.numel() == size_);
  const at::Tensor host = values.to(at::kCPU, at::kFloat).contiguous();
  const float* data = host.const_data_ptr<float>();
  const int64_t blocks = scales_.numel();
  std::vector<float> magnitudes(static_cast<size_t>(blocks));
  std::vector<uint8_t> codes(static_cast<size_t>(codes_.numel()), 0), scales(static_cast<size_t>(blocks));
  at::parallel_for(0, blocks, 64, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kNf4Block, size = std::min(kNf4Block, size_ - first);
      const float magnitude = LargestMagnitude(data + first, size);
      magnitudes[static_cast<size_t>(block)] = magnitude;
      int32_t of_block[kNf4Block];
      NearestCodes(data + first, size, 1.0f / std::max(magnitude, 1e-38f), of_block);
      for (int64_t i = 0; i < size; ++i) {
        const auto code = static_cast<uint8_t>(of_block[i]);
        codes[static_cast<size_t>((first + i) / 2)] |= i % 2 == 0 ? code << 4 : code;
      }
    }
  });
  double sum = 0;
  for (const float magnitude : magnitudes) sum += magnitude;
  const auto mean = static_cast<float>(sum / static_cast<double>(blocks));
  std::vector<float> scale_magnitudes;
  for (int64_t begin = 0; begin < blocks; begin += kNf4ScaleBlock) {
    const int64_t size = std::min(kNf4ScaleBlock, blocks - begin);
    float* block = &magnitudes[static_cast<size_t>(begin)];
    for (int64_t i = 0; i < size; ++i) block[i] -= mean;
    const float magnitude = LargestMagnitude(block, size);
    scale_magnitudes.push_back(magnitude);
    const float inverse = 1.0f / std::max(magnitude, 1e-38f);
    for (int64_t i = 0; i < size; ++i) {
      scales[static_cast<size_t>(begin + i)] = Nearest(DynamicMap(), block[i] * inverse);
    }
  }
  const auto copy = [](at::Tensor& to, void* from, at::ScalarType type) {
    to.copy_(at::from_blob(from, to.sizes(), type));
  };
  copy(codes_, codes.data(), at::kByte);
  copy(scales_, scales.data(), at::kByte);
  copy(scale_magnitudes_, scale_magnitudes.data(), at::kFloat);
  mean_.fill_(mean);
}

void Nf4Tensor::Dequantize(const Numerics& numerics, at::Tensor& out, int64_t first) const {
  TRAINWRIGHT_CHECK(first >= 0 && first + out.numel() <= size_ && out.is_contiguous() &&
                    out.scalar_type() == numerics.storage);
  if (out.is_meta()) return;
  if (!out.is_cpu()) {
    TRAINWRIGHT_CHECK(out.numel() == size_);
    return ops::DequantizeNf4(codes_, scales_, scale_magnitudes_, mean_, numerics.code(), out);
  }
  DequantizeNf4OnCpu(numerics, codes_, scales_, scale_magnitudes_, mean_, out, first);
}

void DequantizeNf4OnCpu(const Numerics& numerics, const at::Tensor& code_bytes, const at::Tensor& scale_bytes,
                        const at::Tensor& magnitudes, const at::Tensor& mean_magnitude, at::Tensor& out,
                        int64_t first) {
  const int64_t total = out.numel();
  const Nf4Parts parts = {code_bytes.const_data_ptr<uint8_t>(), code_bytes.numel(),
                          scale_bytes.const_data_ptr<uint8_t>(), magnitudes.const_data_ptr<float>(),
                          *mean_magnitude.const_data_ptr<float>()};
  const cpu::Codec codec = cpu::CodecOf(numerics);
  auto* to = static_cast<uint8_t*>(out.mutable_data_ptr());
  const auto element_size = static_cast<int64_t>(out.element_size());
  cpu::ParallelRows(Blocks(total, kPiece), kPiece, [&](int64_t begin, int64_t end) {
    float values[kPiece];
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t offset = piece * kPiece, size = std::min(kPiece, total - offset);
      ReadElements(parts, first + offset, size, values);
      cpu::BestKernels().round(codec, values, to + offset * element_size, 0, size);
    }
  });
}

}  // namespace trainwright
