/// Ids of a text, as tests ask for them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/tok/tokenizer.h"

namespace trainwright::test {

inline std::vector<uint32_t> Encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<uint32_t> ids;
  tokenizer.Encode(text, &ids);
  return ids;
}

}  // namespace trainwright::test
