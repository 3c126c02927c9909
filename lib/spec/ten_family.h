/// The family ten: a recurrence with diagonal complex state in place of attention.
///
/// Counts and names of tensors are those of lib/model/ten.h:
///   ten.embed_tokens.weight [V, D], which is the head's too unless there is a lm_head.weight [V, D];
///   ten.norm.{weight,bias} [D]; and in each layer, below ten.layers.{l}.,
///   cell_norm.{weight,bias} [D]               mlp_norm.{weight,bias} [D]
///   cell.in_proj.weight [2K, D]               mlp.up_proj.weight [F, D]
///   cell.conv.weight [2K, taps]               mlp.down_proj.weight [D, F]
///   cell.log_decay, cell.frequency [K]
///   cell.selective_proj.weight [2K, D]        of a selective cell
///   cell.memory.weight [K, K], cell.memory.gate [1]   of a layer that reads the one below
///   cell.coupling.weight [H, K/H, K/H]
///   cell.out_proj.weight [D, 2K]
///   cell.gate_proj.{weight [D, D], bias [D]}
///   with W windows, of k = K / W eigenstates each:
///   multi_scale_norm.{weight,bias} [D]
///   multi_scale.{i}.{in_proj.weight [2k, D], log_decay [k], frequency [k], out_proj.weight [D, 2k]}
///   multi_scale.gate_proj.{weight [D, D], bias [D]}
/// Adapters are put beside the projections of cell and mlp (in, selective, memory, out, gate; up, down); the
/// multi-scale block takes none.
#pragma once

#include "lib/spec/family.h"
#include "lib/spec/ten_fields.h"

namespace trainwright {

const FamilyDescription& TenFamily();

/// The fields of a config of this family.
const TenFields& TenFieldsOf(const ModelConfig& config);

/// What is wrong with a shape, with the name that config.json gives the field; all empty: nothing. For the
/// reader of config.json and for whoever gets a config by another way.
struct TenProblem {
  std::string field, problem;
  std::string hint = {};  ///< may be empty
};
TenProblem ProblemOfTen(const ModelConfig& config);

/// The shapes that have a name, smallest first.
std::vector<ModelPreset> TenPresets();

/// As the functions of lib/spec/model_flops.h.
StepFlops CountTenFlops(const ModelConfig& config, const FineTuning& tuning);

}  // namespace trainwright
