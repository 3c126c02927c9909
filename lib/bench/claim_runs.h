/// The runs that claims are judged by: claims about the same two commands, of the time that a lever saves and
/// of the memory that it costs, are judged by the same ones.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lib/bench/claims.h"
#include "lib/bench/measurement.h"

namespace trainwright {

class ClaimRuns {
 public:
  /// Runs both commands of a claim.
  /// \param metrics what the claims about them are judged by, each once
  using Run = std::function<Measurement(const Claim& claim, const std::vector<std::string>& metrics)>;

  /// \param claims all that Of is asked about, with the metric that decides each
  ClaimRuns(std::vector<std::pair<Claim, std::string>> claims, Run run);
  /// \returns the runs of a claim's commands, which are run when one of their claims is asked about first
  /// \throws what Run throws, after which the next claim runs them again
  const Measurement& Of(const Claim& claim);

 private:
  std::vector<std::pair<Claim, std::string>> claims_;
  Run run_;
  std::deque<std::pair<Claim, Measurement>> measured_;  ///< a deque: results of Of stay where they are
};

}  // namespace trainwright
