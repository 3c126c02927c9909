/// By what a model's vectors are compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainwright {

enum class Similarity : uint8_t {
  kCosine,  ///< of the angle between them, whatever their lengths
  kDot,     ///< their product as they are: of vectors of length 1 the same
};

/// As files name it, ours and those of sentence-transformers: cosine, dot.
std::string SimilarityName(Similarity similarity);
/// Nothing where there is not one of this name.
std::optional<Similarity> FindSimilarity(std::string_view name);

}  // namespace trainwright
