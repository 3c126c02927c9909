/// The command line of `generate`. Free of torch: man page and completions come from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/cli/tool.h"

namespace trainwright {

struct GenerateOptions {
  std::string checkpoint;
  std::optional<std::string> prompt;
  int64_t max_tokens = 128;
  bool bos = false;
  std::string mixed_precision = "no", device = "auto", attn_backend = "auto";
  int threads = 0;
};

const ToolInfo& GenerateInfo();
void DefineGenerateOptions(CLI::App& app, GenerateOptions* options);

}  // namespace trainwright
