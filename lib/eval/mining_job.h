/// The whole of `embed --mine-negatives`: contrastive records + a corpus -> the records with hard negatives.
#pragma once

#include <nlohmann/json.hpp>

#include "lib/device/process_setup.h"
#include "lib/dist/world.h"
#include "lib/eval/embed_settings.h"
#include "lib/model/model_family.h"
#include "lib/report/progress.h"

namespace trainwright {

/// Writes each record with "neg" filled from the texts that its query is nearest to, its positives, those of
/// other records of the same query and texts that are the query's never among them. Texts are told apart by
/// what they say. Memory: the records and the texts of the corpus, the vectors of the queries, the best texts
/// of each.
/// \returns counts for --summary, records_short being those with fewer negatives than were asked for, and
///     hashes
/// \throws Error: kBadInput naming the line of a record or text, kUsage, kIo, kDevice
nlohmann::ordered_json RunMining(const ModelFamilies& families, const EmbedSettings& settings,
                                 const ProcessSetup& process, World* world, ProgressMode progress);

}  // namespace trainwright
