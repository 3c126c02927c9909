#include "lib/spec/rope_parameters.h"

namespace trainwright {

int64_t RopeParameters::RotaryShare(int64_t head_dim) const {
  return static_cast<int64_t>(static_cast<double>(head_dim) * partial_rotary_factor);
}

int64_t RopeParameters::LengthClass(int64_t length) const {
  if (!depends_on_length() || length <= original_positions) return 0;
  return type == RopeType::kDynamic ? length : 1;
}

}  // namespace trainwright
