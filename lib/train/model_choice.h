/// Which model a run trains, by its settings: a preset, a config.json, or one to start from.
#pragma once

#include <optional>
#include <string>

#include "lib/formats/tokenizer_identity.h"
#include "lib/run/run_planner.h"
#include "lib/run/train_settings.h"
#include "lib/spec/family_list.h"
#include "lib/train/start_model.h"

namespace trainwright {

struct ModelChoice {
  ModelConfig config;
  std::string name;                    ///< for the run's folder
  std::optional<ChoiceReason> reason;  ///< when the user did not say
  std::optional<StartModel> start;     ///< whose weights a new run starts from
  /// What its config.json says. That of `config` is true: the objective says what tokens attend to.
  bool is_causal = true;
};

/// \param gpu whether the run is on one: the default model is larger
/// \throws Error{kUsage, kBadInput, kIo}
ModelChoice ChooseModel(const FamilyList& families, const TrainSettings& settings,
                        const TokenizerIdentity& tokenizer, bool gpu);

/// Refuses what the settings say about a model that is given, where it says otherwise.
/// \param whose for messages: "the run's model"
/// \throws Error{kUsage}
void RequireAskedShape(const FamilyList& families, const TrainSettings& settings, const ModelConfig& config,
                       const std::string& whose);

/// The base that a checkpoint's adapters were trained on.
/// \throws Error{kBadInput} on another one
ModelChoice ChooseBase(const FamilyList& families, const TrainSettings& settings,
                       const std::string& checkpoint, const TokenizerIdentity& tokenizer, bool gpu);

/// Where the base of adapters lies, as checkpoints name it.
std::string BaseFolder(const StartModel& start);

}  // namespace trainwright
