#include "lib/eval/prompt_state.h"

#include <memory>
#include <string>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/eval/context_keeper.h"
#include "lib/eval/identity.h"
#include "lib/eval/state_file.h"
#include "lib/io/byte_source.h"
#include "lib/io/output_link.h"
#include "lib/model/language_model.h"

namespace trainwright {
namespace {

constexpr uint64_t kMostStateBytes = uint64_t{1} << 32;

/// The first of the two options that is given; empty: none.
std::string FlagOf(const GenerateSettings& settings) {
  return !settings.state_in.empty() ? "--state-in" : !settings.state_out.empty() ? "--state-out" : "";
}

void CheckStateOutput(const GenerateSettings& settings) {
  if (IsStandardOutput(settings.state_out)) {
    throw Error(ErrorCode::kUsage, "--state-out", "is a file: standard output has the samples");
  }
  if (!settings.prompt) {
    throw Error(ErrorCode::kUsage, "--state-out", "keeps the state of one prompt", "", "give it by --prompt");
  }
  if (settings.state_after == "sample" && settings.samples != 1) {
    throw Error(ErrorCode::kUsage, "--state-after",
                "sample is for one sample, not " + std::to_string(settings.samples), "",
                "leave out --samples");
  }
}

/// Whether the model can go on from what a file holds.
/// \throws Error{kBadInput} naming the file
void CheckState(LanguageModel* model, const RecurrentState& state, const std::string& path) {
  const std::unique_ptr<Decoder> decoder = model->NewDecoder(/*max_tokens=*/1);
  try {
    decoder->body().ImportState(0, state);
  } catch (const Error& error) {
    throw Error(error.code(), path, error.problem(), error.place(), error.hint());
  }
}

}  // namespace

void CheckStateSettings(const GenerateSettings& settings) {
  const std::string flag = FlagOf(settings);
  if (!flag.empty() && !settings.context_cache.empty()) {
    throw Error(ErrorCode::kUsage, flag, "does not go with --context-cache", "",
                "a model has either a state or keys and values");
  }
  if (!flag.empty() && settings.chat) {
    throw Error(ErrorCode::kUsage, flag, "does not go with --chat", "", "give the text by --prompt");
  }
  if (!settings.state_in.empty() && settings.sampling.repetition_penalty != 1) {
    throw Error(ErrorCode::kUsage, "--repetition-penalty", "does not go with --state-in", "",
                "a state does not hold which tokens it is of");
  }
  if (settings.state_in == "-" && !settings.prompt && settings.input == "-") {
    throw Error(ErrorCode::kUsage, "--state-in", "and --input are both standard input", "",
                "write one of them to a file");
  }
  if (!settings.state_out.empty()) {
    CheckStateOutput(settings);
  } else if (settings.state_after != "prompt") {
    throw Error(ErrorCode::kUsage, "--state-after", "is for --state-out");
  }
}

PromptState::PromptState(const GenerateSettings& settings, const Checkpoint& checkpoint, Precision precision,
                         bool writes)
    : settings_(settings), identity_(ContextIdentityOf(checkpoint, precision)) {
  const std::string flag = FlagOf(settings);
  if (flag.empty()) return;
  RefuseToReplaceModel(settings.state_out, checkpoint);
  RequireState(checkpoint.model->body(), flag);
  if (!settings.state_in.empty()) {
    const std::vector<uint8_t> file = ReadWholeFile(settings.state_in, kMostStateBytes);
    before_ = std::make_shared<const RecurrentState>(DecodeState(file, settings.state_in, identity_));
    CheckState(checkpoint.model.get(), *before_, settings.state_in);
    read_ = {{"path", settings.state_in}, {"sha256", HexEncode(Sha256Of(file))}};
  }
  if (writes && !settings.state_out.empty()) {
    sink_ = OpenSink(settings.state_out, /*binary=*/true, /*allow_terminal=*/false);
  }
}

void PromptState::AskFor(GenerationOptions* options) {
  if (sink_ == nullptr) return;
  options->state_after = settings_.state_after == "sample" ? StateAfter::kSample : StateAfter::kPrompt;
  options->take_state = [this](const RecurrentState& state) {
    if (sink_ == nullptr) return;  // where memory was needed a prompt is computed again
    WriteState(sink_.get(), identity_, state);
    sink_->Commit();
    sink_ = nullptr;
  };
}

}  // namespace trainwright
