/// In which form the matrices of a model's layers are kept that are only read. Free of torch.
#pragma once

#include <string>

namespace trainwright {

/// kPlain: the type of the GEMMs. kNf4: 4 bits (lib/nn/linear/nf4.h). kInt8: 8 bits
/// (lib/nn/linear/int8_matrix.h).
enum class WeightFormat { kPlain, kNf4, kInt8 };

/// "none", "nf4", "int8".
/// \throws Error{kUsage} naming `flag`
WeightFormat ParseWeightFormat(const std::string& name, const std::string& flag);
std::string WeightFormatName(WeightFormat format);

}  // namespace trainwright
