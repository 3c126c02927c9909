/// What is added to the cross-entropy of labels: for host and device, torch-free.
#pragma once

namespace trainwright {

/// What a training objective adds to the cross-entropy of a label, with Z = sum_i exp(x_i) over a row's V
/// logits:
///
///   (1 - label_smoothing) (-log p_label) + label_smoothing / V sum_i (-log p_i) + z_loss log^2 Z
///
/// \source smoothing: Szegedy et al. 2015, arXiv:1512.00567, section 7; z-loss, which keeps Z near 1:
/// Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, section 5
struct LossTerms {
  float z_loss = 0;
  float label_smoothing = 0;  ///< in [0, 1)
  bool operator==(const LossTerms&) const = default;
};

}  // namespace trainwright
