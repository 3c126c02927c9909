#include "lib/embedding/similarity.h"

namespace trainwright {

std::string SimilarityName(Similarity similarity) {
  return similarity == Similarity::kCosine ? "cosine" : "dot";
}

std::optional<Similarity> FindSimilarity(std::string_view name) {
  for (const Similarity similarity : {Similarity::kCosine, Similarity::kDot}) {
    if (name == SimilarityName(similarity)) return similarity;
  }
  return std::nullopt;
}

}  // namespace trainwright
