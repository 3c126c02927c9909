/// Which matrices of a model's layers get an adapter, by their names. Free of torch.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

/// What "attention" and "mlp" of LoraOptions::targets stand for: the first parts of names in a layer.
struct LoraBlocks {
  std::vector<std::string> attention, mlp;
};

/// "self_attn.q_proj" of "model.layers.3.self_attn.q_proj": what follows the layer's number; empty where
/// there is none.
std::string NameInLayer(const std::string& module);

/// \param targets as in LoraOptions
/// \param modules paths of the matrices of all layers
/// \returns indices into `modules`, in order
/// \throws Error{kUsage} listing the names there are
std::vector<size_t> ChooseLoraTargets(const std::string& targets, const std::vector<std::string>& modules,
                                      const LoraBlocks& blocks);

}  // namespace trainwright
