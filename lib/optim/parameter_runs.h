/// The trained parameters of a model in maximal runs of those that an optimizer treats alike, so that a range
/// of the flat buffers is updated in few calls. Immutable.
#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "lib/nn/parameters/flat_parameters.h"
#include "lib/optim/optimizer.h"

namespace trainwright {

/// What an update does to a parameter.
struct Treatment {
  bool decay = false;  ///< its weights
  double rate = 1;     ///< what the update's learning rate is multiplied by
  auto operator<=>(const Treatment&) const = default;
};

class ParameterRuns {
 public:
  /// \param takes which trained parameters; absent: all
  explicit ParameterRuns(const FlatParameters& parameters,
                         const std::function<bool(const Parameter&)>& takes = {});
  /// Calls `visit` with the parts of the runs that lie in a range, treatment after treatment; `parts` is
  /// never empty.
  void ForEach(
      const ParameterRange& range,
      const std::function<void(const Treatment&, const std::vector<ParameterRange>& parts)>& visit) const;
  /// Of the parameters that it takes, padding included.
  int64_t elements() const { return elements_; }
  /// Where an element of a parameter that it takes lies in a buffer of elements(), in which they are one
  /// after the other. Of a run all lie side by side.
  int64_t PlaceOf(int64_t element) const;

 private:
  std::map<Treatment, std::vector<ParameterRange>> runs_;
  std::map<int64_t, int64_t> left_out_;  ///< elements before an offset that it does not take, where they grow
  int64_t elements_ = 0;
};

/// How operators take a tensor that may be undefined.
inline std::optional<at::Tensor> IfDefined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace trainwright
