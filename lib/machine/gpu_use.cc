#include "lib/machine/gpu_use.h"

#include <utility>
#include <vector>

#include "lib/machine/gpu_state.h"

namespace trainwright {

GpuUse::GpuUse(std::unique_ptr<GpuManagement> management, std::optional<std::string> visible_devices,
               size_t ordinal)
    : management_(std::move(management)), visible_devices_(std::move(visible_devices)), ordinal_(ordinal) {}

std::optional<double> GpuUse::Read(double time_s) {
  if (management_ == nullptr) return std::nullopt;
  if (asked_at_s_ && time_s - *asked_at_s_ < kLeastInterval_s) return use_;
  asked_at_s_ = time_s;
  use_.reset();
  const std::vector<GpuInfo> gpus = management_->Gpus();
  const std::vector<size_t> visible = VisibleGpus(visible_devices_, gpus);
  if (ordinal_ >= visible.size()) return use_;
  if (const auto percent = gpus[visible[ordinal_]].utilization_percent) use_ = *percent / 100.0;
  return use_;
}

}  // namespace trainwright
