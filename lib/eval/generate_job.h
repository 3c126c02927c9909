/// The whole of `generate`: checkpoint + prompts -> JSON lines.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lib/io/byte_sink.h"

namespace trainwright {

struct GenerateJobOptions {
  std::string checkpoint;
  std::optional<std::string> prompt;  ///< absent: JSON lines {"prompt": "..."} on standard input
  int64_t max_tokens = 128;
  bool add_bos = false;
  std::string mixed_precision = "no";
  std::string device = "auto";
  std::string attn_backend = "auto";  ///< as ParseAttentionBackend takes it
  int threads = 0;  ///< 0: physical cores
};

/// Writes {"prompt", "text", "ids", "sample", "finish"} a prompt as soon as it is done.
/// \returns samples, tokens and seconds for --summary
/// \throws Error: kBadInput (checkpoint, prompt with its line), kUsage, kIo, kDevice, kNonFinite
nlohmann::ordered_json RunGenerate(const GenerateJobOptions& options, ByteSink* out);

}  // namespace trainwright
