/// What the guide of TEN says, line by line, beside where it is measured here or what that takes.
#pragma once

#include <string>
#include <vector>

namespace trainwright {

struct GuideLine {
  std::string line;  ///< "E1" to "E34"; some say several things
  std::string text;  ///< what the guide says, shortened
  std::string here;  ///< where it is measured, what does it, or that it needs a GPU
};

/// All lines, in the order of the guide. Claims, levers, scans, memory and recall are the other tables of
/// `bench --claims ten`.
/// \param has_profile whether train takes --profile
std::vector<GuideLine> TenGuide(bool has_profile);

}  // namespace trainwright
