/// Initial weights of a model.
#pragma once

#include <cstdint>
#include <functional>

#include "lib/nn/parameters/flat_parameters.h"
#include "lib/spec/model_config.h"

namespace trainwright {

/// Matrices normal with the config's initializer_range, those for which `into_residual` holds with this over
/// sqrt(2 num_layers); vectors one, except those named *.bias: zero. A pure function of these, of seed and
/// parameter name, whatever the other parameters. Adapters start as LoraAdapters::Initialize says. Refreshes
/// the compute copy. \source Radford et al. 2019 (the residual scale)
/// \param own holds for parameters that are left as they are, for the family to start them; empty: for none
void InitializeWeights(uint64_t seed, const ModelConfig& config,
                       const std::function<bool(const std::string& name)>& into_residual,
                       FlatParameters* parameters,
                       const std::function<bool(const Parameter& parameter)>& own = {});

/// The projection of embeddings, as InitializeWeights starts it where the config has the usual deviation; of
/// other models nothing. Refreshes the compute copy.
void InitializeProjection(uint64_t seed, FlatParameters* parameters);

/// Weights that take the memory and the time of initial ones where nobody reads the result, in a tenth of the
/// time: every matrix holds the same normal numbers over and over, with deviation 0.02. Adapters start as
/// LoraAdapters::Initialize says. Refreshes the compute copy.
void FillWithStandIns(FlatParameters* parameters);

}  // namespace trainwright
