/// How `generate` writes samples: as JSON lines for programs, or as text for people.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/documents/prompt_reader.h"
#include "lib/eval/generate.h"
#include "lib/eval/generate_settings.h"
#include "lib/eval/sample_ends.h"
#include "lib/io/byte_sink.h"
#include "lib/tok/tokenizer.h"

namespace trainwright {

class SampleOutput {
 public:
  virtual ~SampleOutput() = default;
  /// Sees the ids of a prompt before any of its samples' tokens.
  virtual void Begin(const std::vector<uint32_t>& /*prompt*/) {}
  /// Sees each token of the only sequence that is decoded, where it watches.
  virtual bool watches() const { return false; }
  virtual void See(uint32_t /*id*/) {}
  /// \param text of the whole sample, without its stop
  virtual void Write(const PromptLine& prompt, const Generation& generation, const std::string& text) = 0;
};

/// Refuses a --format that does not go with the other options.
/// \throws Error{kUsage}
void CheckFormat(const GenerateSettings& settings);

/// Whether samples are written as text: --format text, or auto where `on_terminal` and the only sample of a
/// --prompt or of each turn of a --chat is all that is asked for.
bool WritesText(const GenerateSettings& settings, bool on_terminal);

/// \param tokenizer, ends, out outlive the output
/// \param log_probabilities what JSON lines have of them, as of GenerationOptions
std::unique_ptr<SampleOutput> MakeSampleOutput(const Tokenizer* tokenizer, const SampleEnds* ends,
                                               bool as_text, std::optional<int64_t> log_probabilities,
                                               ByteSink* out);

}  // namespace trainwright
