/// The whole of `embed`: checkpoint + texts -> vectors.
#pragma once

#include <nlohmann/json.hpp>

#include "lib/device/process_setup.h"
#include "lib/dist/world.h"
#include "lib/eval/embed_settings.h"
#include "lib/model/model_family.h"
#include "lib/report/progress.h"

namespace trainwright {

/// Writes one vector a text, in the order of the texts. All ranks read the texts and divide the work; the
/// writer alone writes.
/// \param process what the settings' threads and device came to
/// \param world whose ranks have the same settings
/// \returns counts, rates and hashes for --summary
/// \throws Error: kBadInput (checkpoint, a text with its line, a text changed since the run that is resumed),
///     kUsage (also a resumed run with other options, and where a rank has another model or other texts), kIo
///     (also where another rank failed), kDevice, kNonFinite; kInterrupted and kTerminated once the journal
///     says how far it is
nlohmann::ordered_json RunEmbed(const ModelFamilies& families, const EmbedSettings& settings,
                                const ProcessSetup& process, World* world, ProgressMode progress);

}  // namespace trainwright
