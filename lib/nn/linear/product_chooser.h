/// Chooses among the kernels that a library has for each GEMM of a model (product_ops.h), by trying them
/// or by what was chosen before: see lib/spec/product_choices.h.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "lib/spec/product_choices.h"

namespace trainwright {

/// For one thread at a time.
class ProductChooser {
 public:
  /// Computes a GEMM with the kernel of that number, into memory that holds nothing yet.
  /// \returns whether the library has this many
  using Trial = std::function<bool(int64_t candidate)>;

  explicit ProductChooser(ProductChoices choices = {}) : choices_(std::move(choices)) {}
  /// While it is on, GEMMs without a choice are tried: the host waits for the device.
  void set_tries(bool tries) { tries_ = tries; }
  /// Whether there is something to choose, or to choose from.
  bool chooses() const { return tries_ || !choices_.empty(); }
  /// Whether a GEMM has asked: the model has some that the library may compute.
  bool asked() const { return asked_; }
  const ProductChoices& choices() const { return choices_; }
  void set_choices(ProductChoices choices) { choices_ = std::move(choices); }
  /// The candidate to compute a GEMM with: 0 where nothing was chosen.
  int64_t CandidateOf(const std::string& product, at::Device device, const Trial& trial);
  /// The same of a GEMM whose name is made where there is something to choose.
  int64_t CandidateOf(const std::function<std::string()>& name, at::Device device, const Trial& trial) {
    asked_ = true;
    return chooses() ? CandidateOf(name(), device, trial) : 0;
  }

 private:
  bool tries_ = false, asked_ = false;
  ProductChoices choices_;
};

}  // namespace trainwright
