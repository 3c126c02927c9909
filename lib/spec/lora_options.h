/// What a user asks of low-rank adapters. Free of torch.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace trainwright {

/// y = x W^T + scaling() B A dropout(x) beside a frozen W. \source Hu et al. 2021, arXiv:2106.09685
///
/// With `dora` that times m_o / ||W_o + scaling() (B A)_o|| for each output o, whose magnitude m is trained.
/// \source Liu et al. 2024, arXiv:2402.09353
inline constexpr int64_t kMostLoraRank = 65536;

struct LoraOptions {
  int64_t rank = 0;  ///< rows of A, columns of B; from 1 to kMostLoraRank
  double alpha = 0;
  double dropout = 0;  ///< of the adapters' inputs while training, in [0, 1)
  /// Which matrices of the layers: "all-linear", "attention", "mlp", or names of modules, with commas between
  /// them: "q_proj,v_proj". A name stands for every module whose path ends with it.
  std::string targets = "all-linear";
  bool rank_stabilized = false;  ///< \source Kalajdzievski 2023, arXiv:2312.03732
  bool dora = false;
  /// Modules beside the layers that are trained whole, as ChooseSavedModules takes them; empty: none.
  std::string saved_modules = {};
  double scaling() const {
    const auto r = static_cast<double>(rank);
    return alpha / (rank_stabilized ? std::sqrt(r) : r);
  }
  bool operator==(const LoraOptions&) const = default;
};

}  // namespace trainwright
