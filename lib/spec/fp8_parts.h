/// Which GEMMs of a model are computed in fp8 (lib/nn/linear/fp8.h). Free of torch.
#pragma once

#include <string>

namespace trainwright {

struct Fp8Parts {
  bool mlp = false;   ///< of the layers' MLPs
  bool head = false;  ///< the logits, and their gradients' way back
  bool any() const { return mlp || head; }
  bool operator==(const Fp8Parts&) const = default;
};

std::string Fp8PartsName(Fp8Parts parts);  ///< "off", "mlp", "head", "mlp+head"

/// \param flag that the message names
/// \throws Error{kUsage} on another text
Fp8Parts ParseFp8Parts(const std::string& text, const std::string& flag);

}  // namespace trainwright
