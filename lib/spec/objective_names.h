/// The objectives of this library, as plans, flags and files name them.
#pragma once

namespace trainwright {

inline constexpr char kLmObjective[] = "lm";    ///< every token is predicted
inline constexpr char kSftObjective[] = "sft";  ///< those that sft records say

/// Of plans that name none: those of before there was a choice.
inline constexpr char kDefaultObjective[] = "lm";

}  // namespace trainwright
