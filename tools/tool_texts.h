/// The text files of tools/text as the build embeds them, for ParseToolText (lib/cli/tool_text.h).
/// kPackText is tools/text/pack.txt: a new tool is a file there and a line here.
#pragma once

#include <string_view>

namespace trainwright {

extern const std::string_view kBenchText;
extern const std::string_view kCkptCompressText;
extern const std::string_view kEmbedText;
extern const std::string_view kEvaluateText;
extern const std::string_view kGenerateText;
extern const std::string_view kGpuProbeText;
extern const std::string_view kPackText;
extern const std::string_view kPretokenizeText;
extern const std::string_view kTrainText;

}  // namespace trainwright
