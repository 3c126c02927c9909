/// What the descriptions of GPT-2 and GPT-NeoX share: shapes of GELU and LayerNorm, with as many key heads as
/// query heads.
#pragma once

#include <cstdint>

#include "lib/spec/transformer_family.h"

namespace trainwright {

class GeluFamily : public TransformerFamily {
 public:
  bool runs_on_gpu() const final { return true; }

 protected:
  struct Shape {
    const char* name;
    int64_t hidden, layers, heads, positions;
    Activation activation;
    bool bias;
  };
  ModelConfig ConfigOf(const Shape& shape) const;
};

}  // namespace trainwright
