/// Small models of the family ten for tests, one of each kind of layer.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "lib/spec/ten_family.h"
#include "lib/spec/ten_fields.h"

namespace trainwright::test {

struct TenKind {
  std::string name;
  TenFields fields;
};

inline void PrintTo(const TenKind& kind, std::ostream* out) {
  *out << kind.name;
}

/// Chunks of the scan are shorter than the documents of most tests.
inline std::vector<TenKind> TenKinds() {
  TenFields full;
  full.eigenstates = 16;
  full.scan_chunk = 8;
  TenFields plain = full;
  plain.init = TenInit::kCompat;
  plain.convolution = 0;
  plain.depth_decay = plain.layer_memory = false;
  TenFields selective = full;
  selective.selective = true;
  TenFields windowed = full;
  windowed.windows = {1, 2, 4, 8};
  return {{"plain", plain}, {"full", full}, {"selective", selective}, {"windowed", windowed}};
}

/// Its sequences are longer than the positions that it says it was trained for.
inline ModelConfig TenOf(const TenFields& fields) {
  ModelConfig config;
  config.family = &TenFamily();
  config.vocab_size = 300;
  config.hidden_size = 24;
  config.intermediate_size = 40;
  config.num_layers = 3;
  config.max_positions = 32;
  config.tie_embeddings = true;
  config.own = FamilyFields::Of(fields);
  return config;
}

}  // namespace trainwright::test
