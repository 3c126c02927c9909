/// The chat template that a run's checkpoints keep.
#pragma once

#include <optional>

#include "lib/documents/chat_template.h"
#include "lib/train/model_setup.h"
#include "lib/train/resolved_run.h"

namespace trainwright {

/// The template in Jinja by which the run's conversations are written, or, where its data has none, the one
/// that the model had before: training on texts takes no template away.
/// \returns nullopt when the data's template is of another language, it has several, or there is none
std::optional<ChatTemplate> TemplateOfRun(const ResolvedRun& run, const ModelSetup& setup);

}  // namespace trainwright
