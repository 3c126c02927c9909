/// The whole of `evaluate --metric retrieval`: a model, vectors or a run + judgements -> one JSON object.
#pragma once

#include <nlohmann/json.hpp>

#include "lib/device/process_setup.h"
#include "lib/dist/world.h"
#include "lib/eval/retrieval_settings.h"
#include "lib/model/model_family.h"
#include "lib/report/progress.h"

namespace trainwright {

/// Ranks documents by the similarity of their vectors and those of the queries that are judged, as the model
/// compares them (of files of vectors the cosine), exactly, and scores the rankings. Memory: the queries'
/// vectors, the best documents of each, a block of the corpus, and the names of its texts; with the baseline,
/// its index besides. Several ranks divide the embedding; the writer ranks, writes and reports.
/// \returns the measures with their intervals, the numbers of queries and documents, the baseline's measures,
///     and what was measured with and on
/// \throws Error: kBadInput (a file's line, vectors of other lengths, no judged query), kUsage (also where a
///     rank has another model), kIo (also where another rank failed), kDevice
nlohmann::ordered_json RunRetrieval(const ModelFamilies& families, const RetrievalSettings& settings,
                                    const ProcessSetup& process, World* world, ProgressMode progress);

}  // namespace trainwright
