/// The operations that training low-rank adapters takes beside a forward pass through their model, of any
/// family. With adapters of rank r beside matrices of [out, in], a row:
///   forward   2 r (in + out) for every adapter
///   backward  4 r out + 2 r in for every adapter; 2 in out for every matrix and 2 r in for every adapter
///             whose input leads down to an adapter
/// A table of embeddings that is trained whole lies below all matrices. Of DoRA the scales of the outputs are
/// no GEMMs of tokens, and the outputs that their gradients are made of are computed again, as A x is:
/// neither is counted.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/spec/family.h"
#include "lib/spec/lora_options.h"
#include "lib/spec/lora_targets.h"
#include "lib/spec/saved_modules.h"

namespace trainwright {

/// Where a matrix lies in its layer.
struct MatrixPlace {
  int stage = 0;          ///< of those that the family numbers
  double token_rows = 1;  ///< that it multiplies for a token
};

class AdapterFlops {
 public:
  /// \param matrices, places of all layers, in one order
  /// \param below by stage: those of the same layer that lead to its input
  /// \param saved what is trained whole
  /// \throws Error{kUsage} on adapters of modules that the model lacks
  AdapterFlops(const std::vector<LayerMatrix>& matrices, const std::vector<MatrixPlace>& places,
               std::vector<std::vector<int>> below, const LoraOptions& lora, const LoraBlocks& blocks,
               const SavedModules& saved);

  /// Whether a gradient goes to the input of a stage: an adapter or a table that is trained lies below it.
  bool LeadsToAdapter(int64_t layer, int stage) const;
  /// Of all matrices and adapters.
  double per_token() const { return per_token_; }

 private:
  std::vector<std::vector<int>> below_;
  int64_t lowest_;  ///< layer with an adapter; -1: below all of them something is trained
  /// Of the lowest layer, by stage: whether an adapter lies there.
  std::vector<bool> adapted_;
  double per_token_ = 0;
};

}  // namespace trainwright
