/// What a run decides before its first step by what it finds on its device, and then keeps: a run that is
/// resumed asks no device again, so that its bits do not depend on what is free or fast that day. Free of
/// torch.
///
/// Stored as one JSON object, in run.json (lib/run/run_record.h) and in a run's states:
///
///   {"head_slice_logits": n, "attention": "cudnn", "attention_s": {"cudnn": s},
///    "gemm_kernels": {"<GEMM>": n}, "cpu_kernels": "fp32=blocks,bf16=widened"}
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/spec/cpu_gemms.h"
#include "lib/spec/product_choices.h"

namespace trainwright {

struct DeviceChoices {
  /// What an attention backend was measured to take, forward and backward, of one layer and a micro-batch.
  struct AttentionTime {
    std::string backend;
    double seconds = 0;
    bool operator==(const AttentionTime&) const = default;
  };

  int64_t head_slice_logits = 0;  ///< see HeadSliceLogits; 0: not chosen
  std::string attention;          ///< of spans of one length, where `auto` is asked for; empty: not chosen
  std::vector<AttentionTime> attention_times;
  ProductChoices products = {};            ///< of a GPU; empty: not chosen
  std::optional<CpuGemms> cpu_gemms = {};  ///< of a CPU; absent on a GPU, and of runs of before

  bool of_gpu() const { return head_slice_logits > 0 || !attention.empty() || !products.empty(); }
  bool any() const { return of_gpu() || cpu_gemms.has_value(); }
  bool operator==(const DeviceChoices&) const = default;
};

/// Of what was chosen.
nlohmann::ordered_json EncodeDeviceChoices(const DeviceChoices& choices);
/// \throws nlohmann::json::exception on another type
DeviceChoices DecodeDeviceChoices(const nlohmann::ordered_json& json);

/// "cudnn 1.25 ms, flash 1.5 ms"
std::string FormatAttentionTimes(const DeviceChoices& choices);

}  // namespace trainwright
