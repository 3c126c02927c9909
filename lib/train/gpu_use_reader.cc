#include "lib/train/gpu_use_reader.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "lib/base/elapsed.h"
#include "lib/machine/gpu_use.h"

namespace trainwright {

std::function<std::optional<double>()> GpuUseReader(c10::Device device) {
  if (!device.is_cuda()) return {};
  std::string problem;
  std::unique_ptr<GpuManagement> management = OpenNvml(&problem);
  if (management == nullptr) return {};
  std::optional<std::string> visible;
  if (const char* variable = std::getenv("CUDA_VISIBLE_DEVICES")) visible = variable;
  const size_t ordinal = device.has_index() ? static_cast<size_t>(device.index()) : 0;
  const auto use = std::make_shared<GpuUse>(std::move(management), visible, ordinal);
  return [use, start = std::chrono::steady_clock::now()] { return use->Read(SecondsSince(start)); };
}

}  // namespace trainwright
