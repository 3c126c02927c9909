/// What a TEN model has that no other family has. Free of torch; lib/model/ten.h computes with it.
#pragma once

#include <cstdint>
#include <numbers>
#include <vector>

#include "lib/spec/ten_init.h"

namespace trainwright {

/// ModelConfig::own of the family ten. Of the shared fields it has vocab_size, hidden_size (D),
/// intermediate_size (F), num_layers, max_positions (the trained length, no limit), rms_norm_eps (of
/// LayerNorm), tie_embeddings and the ids; num_heads is 0, for there is no attention.
struct TenFields {
  int64_t eigenstates = 0;       ///< K: complex numbers of a layer's state
  int64_t heads = 4;             ///< H: blocks of the coupling of eigenstates; divides K
  TenInit init = TenInit::kLru;  ///< what the trained numbers of a decay mean, too
  /// Of decays where training starts, under lru.
  double min_modulus = 0.9, max_modulus = 0.999, max_angle = 2 * std::numbers::pi;
  bool selective = false;    ///< decays follow the input, too
  int64_t convolution = 4;   ///< taps of the causal convolution before the scan, with SiLU; 0: neither
  bool depth_decay = true;   ///< under compat upper layers begin with longer memories
  bool layer_memory = true;  ///< a layer reads the states of the layer below
  /// Lengths of the multi-scale block's windows, rising: {1, 2, 4, 8}; empty: no block.
  std::vector<int64_t> windows = {};
  int64_t scan_chunk = 256;    ///< rows of a chunk of the scan; another one changes rounding alone
  double dynamics_rate = 0.1;  ///< factor of the learning rate of decays and frequencies
  bool operator==(const TenFields&) const = default;

  bool multi_scale() const { return !windows.empty(); }
  /// K of one window of the multi-scale block, which has one.
  int64_t window_eigenstates() const { return eigenstates / static_cast<int64_t>(windows.size()); }
};

}  // namespace trainwright
