/// The whole of `generate`: checkpoint + prompts -> JSON lines.
#pragma once

#include <nlohmann/json.hpp>

#include "lib/device/process_setup.h"
#include "lib/eval/generate_settings.h"
#include "lib/io/byte_sink.h"
#include "lib/model/model_family.h"

namespace trainwright {

/// Writes {"prompt", "text", "ids", "sample", "finish"}, and "id" where the prompt has one, for each sample:
/// in the order of the prompts, as soon as those before it are done.
/// \param process what the settings' threads and device came to
/// \returns counts and rates for --summary
/// \throws Error: kBadInput (checkpoint, prompt with its line), kUsage, kIo, kDevice, kNonFinite
nlohmann::ordered_json RunGenerate(const ModelFamilies& families, const GenerateSettings& settings,
                                   const ProcessSetup& process, ByteSink* out);

}  // namespace trainwright
