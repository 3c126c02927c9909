/// What rankings scored, for programs and for people.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/retrieval/ranking_metrics.h"

namespace trainwright {

/// A system that ranked documents, and what DescribeScores says about its rankings.
struct DescribedSystem {
  std::string name;
  nlohmann::ordered_json scores;
};

/// Each measure by its name, and as "<name>_interval" the ends of its 95 % interval by resampling queries.
/// \param draws resamples; 0: no intervals
nlohmann::ordered_json DescribeScores(const RankingScores& scores, int draws, uint64_t seed);

/// Logs a table of what is asked about most, with the interval of the first measure.
/// \param systems at least one, all with the same measures
void TellScores(const std::vector<DescribedSystem>& systems);

}  // namespace trainwright
