/// How a model turns its rotary positions; torch-free. rope_scaling.h computes with it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace trainwright {

/// kDefault: none. kLinear: positions divided by a factor (Chen et al. 2023, arXiv:2306.15595). kDynamic: a
/// base that grows with the sequence's length (NTK-aware scaling). kYarn: linear for slow frequencies, none
/// for fast ones (Peng et al. 2023, arXiv:2309.00071). kLongrope: a factor for each frequency, of two sets
/// (Ding et al. 2024, arXiv:2402.13753). kLlama3: as yarn by wavelength (Llama 3.1).
enum class RopeType { kDefault, kLinear, kDynamic, kYarn, kLongrope, kLlama3 };

struct RopeParameters {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double partial_rotary_factor = 1.0;  ///< of a head, in (0, 1]
  double factor = 1.0;                 ///< all but kDefault
  int64_t original_positions = 0;      ///< the context before scaling; kDynamic, kYarn, kLongrope, kLlama3
  std::optional<double> attention_factor;            ///< kYarn, kLongrope: multiplies cosines and sines
  std::optional<double> mscale, mscale_all_dim;      ///< kYarn: what its attention_factor is made of
  double beta_fast = 32, beta_slow = 1;              ///< kYarn: rotations in the original context
  bool truncate = true;                              ///< kYarn: whole dimensions at the ends of the ramp
  double low_freq_factor = 1, high_freq_factor = 4;  ///< kLlama3
  std::vector<double> short_factors, long_factors;   ///< kLongrope: one a frequency

  bool operator==(const RopeParameters&) const = default;

  /// Whether a sequence's frequencies depend on its length.
  bool depends_on_length() const { return type == RopeType::kDynamic || type == RopeType::kLongrope; }
  /// A sequence's length as far as its frequencies depend on it: equal values have equal frequencies.
  int64_t LengthClass(int64_t length) const;
  /// Pairs of elements of a head that turn. An odd share of the head is rounded up.
  int64_t pairs(int64_t head_dim) const { return (RotaryShare(head_dim) + 1) / 2; }
  /// Elements of a head that the formulas divide exponents by.
  int64_t RotaryShare(int64_t head_dim) const;
};

}  // namespace trainwright
