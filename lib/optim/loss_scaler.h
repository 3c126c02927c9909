/// Dynamic loss scaling for fp16. \source Micikevicius et al. 2018, arXiv:1710.03740, section 3.2
///
/// The scale is always a power of two, so scaling and unscaling lose no bits.
#pragma once

#include <cstdint>

namespace trainwright {

class LossScaler {
 public:
  /// What a checkpoint keeps.
  struct State {
    double scale = 1.0;
    int64_t good_steps = 0;     ///< since the last change of the scale
    int64_t skipped_steps = 0;  ///< in the whole run
    bool operator==(const State&) const = default;
  };

  /// \param enabled false: the scale is 1 for ever and steps are never skipped on its account
  explicit LossScaler(bool enabled);
  bool enabled() const { return enabled_; }
  double scale() const { return state_.scale; }
  /// Takes whether the step's gradients were finite: a bad step halves the scale (not below 1), every
  /// 2000th good step in a row doubles it (not above 2^24).
  /// \returns whether the step is to be applied
  bool Update(bool finite);
  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  bool enabled_;
  State state_;
};

}  // namespace trainwright
