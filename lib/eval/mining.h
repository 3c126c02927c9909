/// The whole of `embed --mine-negatives`: contrastive records + a corpus -> the records with hard negatives.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "lib/device/process_setup.h"
#include "lib/dist/world.h"
#include "lib/eval/embed_settings.h"
#include "lib/model/model_family.h"
#include "lib/report/progress.h"
#include "lib/retrieval/scored_row.h"

namespace trainwright {

/// Which of the texts near a query are its negatives.
struct NegativeRules {
  int64_t negatives = 15;
  int64_t first_place = 1, last_place = 200;  ///< of the ranking, from 1, what may not be taken left out
  double relative_margin = 0.05;              ///< in [0, 1]
};

/// \param ranking the nearest rows, the nearest first
/// \param excluded rows that are no negatives: the query's own texts
/// \param positive_score the lowest of the positives': rows that score above it less the margin's share of it
///     are left out, as they may well be right
/// \returns rows, the nearest first
std::vector<uint64_t> ChooseNegatives(const std::vector<ScoredRow>& ranking,
                                      const std::set<uint64_t>& excluded, double positive_score,
                                      const NegativeRules& rules);

/// Writes each record with "neg" filled from the texts that its query is nearest to, its positives and texts
/// that are the query's never among them. Texts are told apart by what they say. Memory: the records and the
/// texts of the corpus, the vectors of the queries, the best texts of each.
/// \returns counts for --summary, records_short being those with fewer negatives than were asked for, and
///     hashes
/// \throws Error: kBadInput naming the line of a record or text, kUsage, kIo, kDevice
nlohmann::ordered_json RunMining(const ModelFamilies& families, const EmbedSettings& settings,
                                 const ProcessSetup& process, World* world, ProgressMode progress);

}  // namespace trainwright
