/// Reads the text_pipeline.h of a tokenizer.json file.
#pragma once

#include "lib/tok/text_pipeline.h"
#include "lib/tok/tokenizer_json_values.h"

namespace trainwright {

/// \param root of the file
/// \throws Error{kBadInput} when it is malformed, or is a tokenizer that this build does not encode exactly
TextPipeline ReadTextPipeline(TokenizerJsonValues::Element root, const TokenizerJsonValues& values);

}  // namespace trainwright
