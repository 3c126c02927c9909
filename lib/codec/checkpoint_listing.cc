#include "lib/codec/checkpoint_listing.h"

namespace trainwright {
namespace {

constexpr std::array kModeNames = {"raw", "const", "zstd", "rans"};
constexpr std::array kTransformNames = {"none", "rank-one", "base"};

std::string TransformName(TensorTransform transform) {
  return kTransformNames[static_cast<size_t>(transform)];
}

}  // namespace

std::string TensorListing::Method() const {
  std::string text;
  for (const auto& counts : planes) {
    std::string plane;
    for (size_t mode = 0; mode < counts.size(); ++mode) {
      if (counts[mode] > 0) plane += (plane.empty() ? "" : "+") + std::string(kModeNames[mode]);
    }
    text += (text.empty() ? "" : "/") + plane;
  }
  if (blocks == 0) return "-";
  return transform == TensorTransform::kNone ? text : TransformName(transform) + " " + text;
}

std::vector<TensorListing> ListTensors(const CompressedCheckpoint& checkpoint) {
  std::vector<TensorListing> listing;
  for (size_t i = 0; i < checkpoint.tensors(); ++i) {
    const SafetensorsEntry& entry = checkpoint.head().source.entries[i];
    const StoredTensor stored = checkpoint.Open(i);
    const BlockDecoder& decoder = stored.decoder();
    TensorListing tensor{.name = entry.name,
                         .dtype = entry.dtype,
                         .shape = entry.shape,
                         .size_bytes = entry.end - entry.begin,
                         .compressed_bytes = checkpoint.tail().coded_bytes[i],
                         .transform = decoder.transform(),
                         .blocks = decoder.blocks(),
                         .planes = {}};
    tensor.planes.resize(ElementBytes(decoder.type()));
    for (uint64_t block = 0; block < tensor.blocks; ++block) {
      const BlockPlanes planes = stored.PlanesOf(block);
      for (size_t p = 0; p < planes.planes; ++p) ++tensor.planes[p][static_cast<size_t>(planes.mode[p])];
    }
    listing.push_back(std::move(tensor));
  }
  return listing;
}

nlohmann::ordered_json ToJson(const TensorListing& tensor) {
  nlohmann::ordered_json planes = nlohmann::ordered_json::array();
  for (const auto& counts : tensor.planes) {
    nlohmann::ordered_json plane = nlohmann::ordered_json::object();
    for (size_t mode = 0; mode < counts.size(); ++mode) {
      if (counts[mode] > 0) plane[kModeNames[mode]] = counts[mode];
    }
    planes.push_back(plane);
  }
  return {{"name", tensor.name},
          {"dtype", tensor.dtype},
          {"shape", tensor.shape},
          {"size_bytes", tensor.size_bytes},
          {"compressed_bytes", tensor.compressed_bytes},
          {"ratio", tensor.ratio()},
          {"transform", TransformName(tensor.transform)},
          {"blocks", tensor.blocks},
          {"planes", planes}};
}

}  // namespace trainwright
