/// The command line of `embed`. Free of torch: man page and completions come from it.
#pragma once

#include "lib/cli/tool.h"
#include "lib/eval/embed_settings.h"

namespace trainwright {

const ToolInfo& EmbedInfo();
void DefineEmbedOptions(CLI::App& app, EmbedSettings* settings);

/// --truncate-dim, --max-length, --batch-tokens, --batch-invariant, --pooling, --attn and --template.
void AddEmbeddingOptions(CLI::App& app, const std::string& group, EmbeddingSettings* settings);

}  // namespace trainwright
