/// What was chosen for the user, reported on the console as it is decided and kept for --explain.
#pragma once

#include <vector>

#include "lib/base/log.h"
#include "lib/run/run_planner.h"

namespace trainwright {

class ChoiceLog {
 public:
  /// \param quiet nothing goes to the console: --explain reports it all at the end
  explicit ChoiceLog(bool quiet = false) : quiet_(quiet) {}
  /// Keeps the reasons and reports those that have a headline, once the run is sure to begin (HoldInfo).
  void Announce(const std::vector<ChoiceReason>& reasons) {
    for (const ChoiceReason& reason : reasons) {
      reasons_.push_back(reason);
      if (!reason.headline.empty() && !quiet_) HoldInfo(reason.line());
    }
  }
  const std::vector<ChoiceReason>& reasons() const { return reasons_; }

 private:
  bool quiet_;
  std::vector<ChoiceReason> reasons_;
};

}  // namespace trainwright
