#include "lib/retrieval/compared_vectors.h"

#include "lib/base/error.h"

namespace trainwright {

ComparedVectors OpenComparedVectors(const std::string& first_path, const std::string& second_path,
                                    int64_t truncate_dim) {
  ComparedVectors vectors = {.first = OpenVectors(first_path), .second = OpenVectors(second_path)};
  if (vectors.first->columns() != vectors.second->columns()) {
    throw Error(ErrorCode::kBadInput, first_path,
                "has vectors of " + std::to_string(vectors.first->columns()) + " numbers, and " +
                    second_path + " of " + std::to_string(vectors.second->columns()),
                "", "embed both with the same model and --truncate-dim");
  }
  vectors.columns = vectors.first->columns();
  vectors.kept_columns = truncate_dim > 0 ? truncate_dim : vectors.columns;
  if (vectors.kept_columns > vectors.columns) {
    throw Error(ErrorCode::kUsage, "--truncate-dim",
                "is more than the " + std::to_string(vectors.columns) + " numbers of a vector");
  }
  return vectors;
}

}  // namespace trainwright
