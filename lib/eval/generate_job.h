/// The whole of `generate`: checkpoint + prompts -> JSON lines.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "lib/device/process_setup.h"
#include "lib/dist/world.h"
#include "lib/eval/generate_settings.h"
#include "lib/io/byte_sink.h"
#include "lib/model/model_family.h"

namespace trainwright {

/// Refuses what several ranks cannot do with the result of one.
/// \throws Error{kUsage}
void CheckRanks(const GenerateSettings& settings, int64_t ranks);

/// Writes {"prompt", "text", "ids", "sample", "finish"}, and what else the prompt's line has, for each
/// sample: in the order of the prompts, as soon as those before it are done; or the text alone, as it is
/// made. Several ranks divide the prompts of the input, or the samples of the only prompt, and the writer
/// alone writes what one rank with as many threads would.
/// \param process what the settings' threads and device came to
/// \param out written by the writer
/// \param on_terminal whether somebody watches `out`
/// \param world whose ranks have the same settings
/// \returns counts and rates for --summary
/// \throws Error: kBadInput (checkpoint, prompt with its line), kUsage (also what several ranks cannot do,
///     and where one has another model or other prompts), kIo (also where another rank failed), kDevice,
///     kNonFinite
nlohmann::ordered_json RunGenerate(const ModelFamilies& families, const GenerateSettings& settings,
                                   const ProcessSetup& process, ByteSink* out, World* world = Solo(),
                                   bool on_terminal = false);

}  // namespace trainwright
