#include "lib/spec/gelu_family.h"

namespace trainwright {

ModelConfig GeluFamily::ConfigOf(const Shape& shape) const {
  ModelConfig config;
  config.preset = shape.name;
  config.family = this;
  config.hidden_size = shape.hidden;
  config.intermediate_size = 4 * shape.hidden;
  config.num_layers = shape.layers;
  config.num_heads = config.num_kv_heads = shape.heads;
  config.head_dim = shape.hidden / shape.heads;
  config.max_positions = shape.positions;
  config.activation = shape.activation;
  if (shape.bias) config.biases = Biases::All();
  return config;
}

}  // namespace trainwright
