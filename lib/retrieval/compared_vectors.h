/// Two files of vectors that are compared with each other: queries with a corpus, or texts with texts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/retrieval/vector_reader.h"

namespace trainwright {

struct ComparedVectors {
  std::unique_ptr<VectorReader> first, second;
  int64_t columns = 0;       ///< of a vector in either file
  int64_t kept_columns = 0;  ///< the first of these, which are compared
};

/// \param truncate_dim columns that are kept; 0: all
/// \throws as OpenVectors; Error{kBadInput} where the vectors of one file are longer than those of the other;
///     Error{kUsage} naming --truncate-dim where they have fewer columns than that
ComparedVectors OpenComparedVectors(const std::string& first_path, const std::string& second_path,
                                    int64_t truncate_dim);

}  // namespace trainwright
