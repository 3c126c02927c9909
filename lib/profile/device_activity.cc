#include "lib/profile/device_activity.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <tuple>
#include <utility>

namespace trainwright {
namespace {

using Word = std::pair<std::string_view, ProfilePart>;

/// In lower case; the first that a kernel's name holds tells its part. Those of this project's kernels are
/// their functions' names: lib/nn/*/*.cu.
constexpr auto kWords = std::to_array<Word>({
    {"nccl", ProfilePart::kExchange},
    {"flash", ProfilePart::kAttention},
    {"fmha", ProfilePart::kAttention},
    {"sdpa", ProfilePart::kAttention},
    {"attention", ProfilePart::kAttention},
    {"joinheads", ProfilePart::kAttention},
    {"softmax_warp", ProfilePart::kAttention},  // of scores that are written out
    {"crossentropy", ProfilePart::kHead},
    {"cross_entropy", ProfilePart::kHead},
    {"nll_loss", ProfilePart::kHead},
    {"softmax", ProfilePart::kHead},
    {"headrowskernel", ProfilePart::kHead},
    {"adam", ProfilePart::kOptimizer},
    {"updatekernel", ProfilePart::kOptimizer},
    {"lionkernel", ProfilePart::kOptimizer},
    {"multi_tensor_apply", ProfilePart::kOptimizer},
    {"squareskernel", ProfilePart::kClip},
    {"addupkernel", ProfilePart::kClip},
    {"finishstepkernel", ProfilePart::kClip},
    {"embedding", ProfilePart::kEmbedding},
    {"embedkernel", ProfilePart::kEmbedding},
    {"addstretcheskernel", ProfilePart::kEmbedding},
    {"indexselect", ProfilePart::kEmbedding},
    {"index_select", ProfilePart::kEmbedding},
    {"ropekernel", ProfilePart::kPosition},
    {"rotary", ProfilePart::kPosition},
    {"encoderowskernel", ProfilePart::kGemm},  // operands in fp8, as the next three
    {"encodecolumnskernel", ProfilePart::kGemm},
    {"largestkernel", ProfilePart::kGemm},
    {"fp8", ProfilePart::kGemm},
    {"dequantize", ProfilePart::kGemm},
    {"scan", ProfilePart::kScan},
    {"endskernel", ProfilePart::kScan},
    {"carrykernel", ProfilePart::kScan},
    {"backwardrowskernel", ProfilePart::kScan},
    {"rowskernel", ProfilePart::kScan},
    {"norm", ProfilePart::kNorm},
    {"addpartialsumskernel", ProfilePart::kNorm},  // of biases, too, whose sums are shorter
    {"addbiaskernel", ProfilePart::kGemm},         // beside a product, as on the host
    {"columnsumskernel", ProfilePart::kGemm},
    {"scalecolumns", ProfilePart::kGemm},
    {"gemm", ProfilePart::kGemm},
    {"gemv", ProfilePart::kGemm},
    {"nvjet", ProfilePart::kGemm},  // cuBLAS of CUDA 13
    {"xmma", ProfilePart::kGemm},
    {"cutlass", ProfilePart::kGemm},
    {"cublas", ProfilePart::kGemm},
    {"splitk", ProfilePart::kGemm},
    {"roundkernel", ProfilePart::kActivation},
    {"swiglu", ProfilePart::kActivation},
    {"gelu", ProfilePart::kActivation},
    {"silu", ProfilePart::kActivation},
    {"sigmoid", ProfilePart::kActivation},
    {"dropout", ProfilePart::kActivation},
});

}  // namespace

std::string ActivityName(const DeviceActivity& activity) {
  switch (activity.kind) {
    case ActivityKind::kCopyToDevice:
      return "memcpy HtoD";
    case ActivityKind::kCopyToHost:
      return "memcpy DtoH";
    case ActivityKind::kCopyOnDevice:
      return "memcpy DtoD";
    case ActivityKind::kFill:
      return "memset";
    case ActivityKind::kKernel:
      break;
  }
  return activity.name;
}

ProfilePart PartOfKernel(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const auto* const found = std::find_if(kWords.begin(), kWords.end(), [&](const Word& word) {
    return lower.find(word.first) != std::string::npos;
  });
  return found == kWords.end() ? ProfilePart::kOther : found->second;
}

ProfilePart PartOfActivity(const DeviceActivity& activity) {
  switch (activity.kind) {
    case ActivityKind::kKernel:
      return PartOfKernel(activity.name);
    case ActivityKind::kCopyToDevice:
    case ActivityKind::kCopyToHost:
      return ProfilePart::kUpload;
    case ActivityKind::kCopyOnDevice:
    case ActivityKind::kFill:
      break;
  }
  return ProfilePart::kOther;
}

void SortActivities(std::vector<DeviceActivity>* activities) {
  std::sort(activities->begin(), activities->end(), [](const DeviceActivity& a, const DeviceActivity& b) {
    return std::tuple(a.device, a.stream, a.start_ns, -a.end_ns) <
           std::tuple(b.device, b.stream, b.start_ns, -b.end_ns);
  });
}

int64_t BusyNanoseconds(const std::vector<DeviceActivity>& activities) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  spans.reserve(activities.size());
  for (const DeviceActivity& activity : activities) spans.emplace_back(activity.start_ns, activity.end_ns);
  std::sort(spans.begin(), spans.end());
  int64_t busy_ns = 0, until_ns = spans.empty() ? 0 : spans.front().first;
  for (const auto& [start_ns, end_ns] : spans) {
    if (end_ns <= until_ns) continue;
    busy_ns += end_ns - std::max(start_ns, until_ns);
    until_ns = end_ns;
  }
  return busy_ns;
}

}  // namespace trainwright
