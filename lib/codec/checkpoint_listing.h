/// What a compressed checkpoint holds, tensor by tensor.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/codec/compressed_checkpoint.h"

namespace trainwright {

struct TensorListing {
  std::string name, dtype;
  std::vector<int64_t> shape;
  uint64_t size_bytes = 0, compressed_bytes = 0;
  TensorTransform transform = TensorTransform::kNone;
  uint64_t blocks = 0;
  /// Blocks in each PlaneMode, for each plane, most significant first.
  std::vector<std::array<uint64_t, 4>> planes;

  double ratio() const { return static_cast<double>(size_bytes) / static_cast<double>(compressed_bytes); }
  /// "rank-one rans/raw": the transform, if any, and the modes of each plane.
  std::string Method() const;
};

/// Reads the heads of tensors and blocks, not their content.
/// \throws Error{kBadInput, kIo}
std::vector<TensorListing> ListTensors(const CompressedCheckpoint& checkpoint);

/// Names for scripts: name, dtype, shape, size_bytes, compressed_bytes, ratio, transform, blocks, planes.
nlohmann::ordered_json ToJson(const TensorListing& tensor);

}  // namespace trainwright
