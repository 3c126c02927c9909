/// The objectives of this library, as plans, flags and files name them.
#pragma once

#include <string>

namespace trainwright {

inline constexpr char kLmObjective[] = "lm";    ///< every token is predicted
inline constexpr char kSftObjective[] = "sft";  ///< those that sft records say
/// Texts are embedded, and what follows them predicted, by one model.
inline constexpr char kGritObjective[] = "grit";

/// Of plans that name none: those of before there was a choice.
inline constexpr char kDefaultObjective[] = "lm";

/// The group of flags that only an objective has: "Objective grit".
inline std::string FlagGroupOf(const std::string& objective) {
  return "Objective " + objective;
}

}  // namespace trainwright
