/// Shapes of the family ten that have a name. With the 50,257 tokens of GPT-2 they have
///   ten-nano    7,096,451    ten-small    40,720,645    ten-small-32k   131,355,655, stated 123M
///   ten-micro  11,196,227    ten-medium  106,025,483    ten-medium-32k  281,104,651, stated 320M
///                            ten-large   211,262,479    ten-large-32k   493,367,823, stated 520M
/// parameters, and ten-small-32k without its gate 122,958,855.
#include "lib/spec/ten_family.h"

namespace trainwright {
namespace {

struct TenShape {
  const char* name;
  int64_t hidden, layers, eigenstates, positions;
  bool multi_scale = false;
};

constexpr TenShape kShortTen[] = {
    {"ten-nano", 128, 4, 32, 512},     {"ten-micro", 192, 4, 64, 1024},    {"ten-small", 512, 6, 64, 512},
    {"ten-medium", 768, 12, 96, 2048}, {"ten-large", 1024, 16, 128, 2048},
};
constexpr TenShape kLongTen[] = {
    {"ten-small-32k", 1024, 8, 128, 32768},
    {"ten-medium-32k", 1280, 12, 160, 32768, true},
    {"ten-large-32k", 1536, 16, 192, 32768, true},
};

ModelConfig TenConfigOf(const TenShape& shape) {
  ModelConfig config;
  config.preset = shape.name;
  config.family = &TenFamily();
  config.hidden_size = shape.hidden;
  config.intermediate_size = 4 * shape.hidden;
  config.num_layers = shape.layers;
  config.max_positions = shape.positions;
  config.tie_embeddings = true;
  TenFields fields = {.eigenstates = shape.eigenstates};
  if (shape.multi_scale) fields.windows = {1, 2, 4, 8};
  config.own = FamilyFields::Of(fields);
  return config;
}

}  // namespace

std::vector<ModelPreset> TenPresets() {
  std::vector<ModelPreset> presets;
  for (const TenShape& shape : kShortTen) {
    presets.push_back({TenConfigOf(shape), "TEN: a recurrence with complex states in place of attention"});
  }
  for (const TenShape& shape : kLongTen) {
    presets.push_back(
        {TenConfigOf(shape),
         "TEN for 32,768 tokens: 131.4M, 281.1M and 493.4M parameters with the tokens of GPT-2, "
         "stated as 123M, 320M and 520M"});
  }
  return presets;
}

}  // namespace trainwright
