/// --state-in, --state-out and --state-after of `generate`: the state that prompts go on from, and the file
/// for the one that a prompt or its sample ends with.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "lib/eval/generate.h"
#include "lib/eval/generate_settings.h"
#include "lib/io/byte_sink.h"
#include "lib/model/context_cache.h"
#include "lib/model/open_model.h"
#include "lib/nn/precision.h"

namespace trainwright {

/// Whether the options of states go together, and with the others. Reads no file.
/// \throws Error{kUsage} naming the flag
void CheckStateSettings(const GenerateSettings& settings);

/// Not thread-safe.
class PromptState {
 public:
  /// Reads the one file and opens the other, which appears once the state is there.
  /// \param settings outlives this
  /// \param writes whether this rank writes what is written
  /// \throws Error{kUsage} naming the family of a model that carries no state; Error{kBadInput, kIo} naming
  ///     the file
  PromptState(const GenerateSettings& settings, const Checkpoint& checkpoint, Precision precision,
              bool writes);

  /// What prompts go on from; null: nothing.
  const std::shared_ptr<const RecurrentState>& before() const { return before_; }
  /// {"path", "sha256"} of the file that it was read from; null: none.
  const nlohmann::ordered_json& identity() const { return read_; }
  /// Has the generation give the state that is to be written, if one is.
  /// \param options does not outlive this
  void AskFor(GenerationOptions* options);

 private:
  const GenerateSettings& settings_;
  ContextIdentity identity_;
  std::shared_ptr<const RecurrentState> before_;
  nlohmann::ordered_json read_;
  std::unique_ptr<ByteSink> sink_;  ///< null: nothing is to be written, or it has been
};

}  // namespace trainwright
