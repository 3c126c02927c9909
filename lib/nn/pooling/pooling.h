/// How the hidden states of a text become one vector. Torch-free.
///
/// The pooled rows of a text are those after its instruction, which is read but not pooled.
/// \source weighted mean: Muennighoff 2022 (SGPT), arXiv:2202.08904; the choice of all four: Muennighoff et
/// al. 2024 (GRIT), arXiv:2402.09906
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainwright {

enum class Pooling : uint8_t {
  kMean,          ///< of the pooled rows
  kWeightedMean,  ///< likewise, with the weights 1, 2, 3 ... from the first pooled row on
  kCls,           ///< the text's first row, be it an instruction's
  kLastToken,     ///< its last row
};

/// As options and files name it: mean, weightedmean, cls, lasttoken.
std::string PoolingName(Pooling pooling);
/// Nothing where there is not one of this name.
std::optional<Pooling> FindPooling(std::string_view name);
/// All names, in the order of the enumeration.
std::vector<std::string> PoolingNames();

}  // namespace trainwright
