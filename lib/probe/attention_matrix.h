/// Which attention backends take which heads, types and masks on a device: by their rules, and tried.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/nn/attention/attention_backend.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// causal: one span, as a decoder computes it; packed: causal inside each of several spans, which is what
/// train computes; packed-both-ways: every token sees each of its span, as texts that are embedded do; none:
/// every token sees every other, by torch's own entries.
enum class ProbedMask { kCausal, kPacked, kPackedBothWays, kNone };
inline constexpr ProbedMask kProbedMasks[] = {ProbedMask::kCausal, ProbedMask::kPacked,
                                              ProbedMask::kPackedBothWays, ProbedMask::kNone};
std::string ProbedMaskName(ProbedMask mask);

struct AttentionCase {
  Precision precision = Precision::kFp32;
  int64_t head_dim = 64;
  ProbedMask mask = ProbedMask::kPacked;
  AttentionBackend backend = AttentionBackend::kAuto;
};

struct AttentionAnswer {
  AttentionCase of;
  bool accepts = false;
  bool tried = false;  ///< it ran here, on small inputs, or refused here; false: decided by the rules alone
  std::string reason;  ///< of a refusal: the rule, or torch's words
};

/// All types, masks and backends with the sizes of heads that models have.
/// \param tries whether to run those that the rules take; of a device that is not here only the rules can be
///     reported (torch's meta device stands for a GPU)
std::vector<AttentionAnswer> AskAttention(c10::Device device, bool tries);

nlohmann::ordered_json EncodeAttentionAnswer(const AttentionAnswer& answer);

/// A line for each type and mask, a column for each backend with the sizes of heads that it takes.
std::string FormatAttention(const std::vector<AttentionAnswer>& answers);

}  // namespace trainwright
