/// Which options of `embed` go together.
#pragma once

#include "lib/eval/embed_settings.h"

namespace trainwright {

/// Whether what is asked for means something to the embedding of texts, or to the mining of negatives. Opens
/// no file.
/// \throws Error{kUsage} naming the flag
void CheckEmbedSettings(const EmbedSettings& settings);

}  // namespace trainwright
