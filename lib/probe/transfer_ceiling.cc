#include "lib/probe/transfer_ceiling.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "lib/base/units.h"
#include "lib/device/device_sync.h"

namespace trainwright {

std::vector<Measurement> MeasureTransfers(c10::Device device, const TransferBudget& budget) {
  const auto on_device = at::TensorOptions().dtype(at::kByte).device(device);
  const auto on_host = at::TensorOptions().dtype(at::kByte).device(at::kCPU);
  at::Tensor here = at::zeros({budget.size_bytes}, on_device),
             there = at::zeros({budget.size_bytes}, on_device);
  std::vector<Measurement> measured;
  const auto measure = [&](const char* what, double bytes_a_byte, at::Tensor& to, const at::Tensor& from) {
    Measurement one{.what = what, .device = device.str(), .method = "torch"};
    one.size = FormatBytes(static_cast<uint64_t>(budget.size_bytes));
    one.unit = "byte/s";
    one.rate = MeasureRate({.amount = bytes_a_byte * static_cast<double>(budget.size_bytes),
                            .run = [&] { to.copy_(from, /*non_blocking=*/true); },
                            .finish = [&] { WaitFor(device); }},
                           {.time_s = budget.time_s * 0.75, .warmup_s = budget.time_s * 0.25});
    measured.push_back(std::move(one));
  };
  measure("device_copy", 2, here, there);
  for (const bool pinned : {true, false}) {
    if (pinned && device.is_cpu()) continue;
    at::Tensor host = at::empty({budget.size_bytes}, on_host.pinned_memory(pinned)).zero_();
    measure(pinned ? "h2d_pinned" : "h2d_pageable", 1, here, host);
    measure(pinned ? "d2h_pinned" : "d2h_pageable", 1, host, here);
  }
  return measured;
}

}  // namespace trainwright
