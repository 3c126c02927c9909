/// The whole of `evaluate --metric sts`: pairs of texts with a score + a model or vectors -> one JSON object.
#pragma once

#include <nlohmann/json.hpp>

#include "lib/device/process_setup.h"
#include "lib/dist/world.h"
#include "lib/eval/retrieval_settings.h"
#include "lib/model/model_family.h"

namespace trainwright {

/// Correlates the similarities of the pairs' vectors, as the model compares them (of files of vectors their
/// cosines), with their scores. Memory: a block of texts, and two numbers a pair.
/// \returns spearman and pearson with their intervals (null where there is no correlation, as without any
///     spread), pairs, and what was measured with and on
/// \throws Error: kBadInput (a line of the pairs, other numbers of vectors than pairs, fewer than two pairs),
///     kUsage, kIo, kDevice
nlohmann::ordered_json RunSts(const ModelFamilies& families, const StsSettings& settings,
                              const ProcessSetup& process, World* world);

}  // namespace trainwright
