#include "lib/train/model_choice.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/io/byte_source.h"
#include "lib/model/open_model.h"
#include "lib/spec/config_json.h"
#include "lib/spec/family_options.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

bool IsConfigPath(const std::string& model) {
  return model.find('/') != std::string::npos || model.ends_with(".json") || fs::is_directory(model);
}

ModelChoice ConfiguredModel(const FamilyList& families, const std::string& model,
                            const TokenizerIdentity& tokenizer) {
  const std::string path = fs::is_directory(model) ? model + "/config.json" : model;
  const std::vector<uint8_t> text = ReadWholeFile(path, 1 << 20);
  ModelChoice chosen = {.config = DecodeConfigJson(families, std::string(AsText(text)), path),
                        .name = "custom"};
  if (chosen.config.vocab_size < tokenizer.vocab_size) {
    throw Error(ErrorCode::kBadInput, path,
                "vocab_size " + std::to_string(chosen.config.vocab_size) + " is smaller than the " +
                    std::to_string(tokenizer.vocab_size) + " ids of the data's tokenizer",
                "", "raise vocab_size, or pack data of the model's own tokenizer");
  }
  return chosen;
}

ModelChoice PresetModel(const FamilyList& families, const std::string& asked,
                        const TokenizerIdentity& tokenizer, bool gpu) {
  const std::string preset = asked.empty() ? families.DefaultPreset(gpu) : asked;
  ModelChoice chosen = {.config = families.PresetConfig(preset, tokenizer.vocab_size), .name = preset};
  if (asked.empty()) {
    chosen.reason = {"model",
                     std::string("it learns within minutes on ") + (gpu ? "a GPU" : "a CPU") +
                         "; --model takes another preset or a config.json",
                     "model " + preset};
  }
  return chosen;
}

ModelChoice StartedModel(const FamilyList& families, const std::string& path,
                         const TokenizerIdentity& tokenizer) {
  const StartModel start = OpenStartModel(families, path, tokenizer);
  return {.config = start.config, .name = "tuned", .start = start};
}

/// The special tokens are the tokenizer's where it has them, or else the model's that the run starts from. Of
/// that one all stay that end a sample where there are several: a chat model ends turns by one and texts by
/// another.
void TakeSpecialIds(const TokenizerIdentity& tokenizer, ModelChoice* chosen) {
  ModelConfig& config = chosen->config;
  const auto take = [&](uint32_t id, int64_t* config_id) {
    if (chosen->start && id == kNoId) return false;
    *config_id = id == kNoId ? int64_t{-1} : static_cast<int64_t>(id);
    return true;
  };
  take(tokenizer.bos_id, &config.bos_id);
  take(tokenizer.pad_id, &config.pad_id);
  if (!chosen->start || chosen->start->end_ids.size() < 2) {
    if (take(tokenizer.eos_id, &config.eos_id)) config.more_eos_ids.clear();
    return;
  }
  std::vector<uint32_t> ends = chosen->start->end_ids;
  const bool known = std::find(ends.begin(), ends.end(), tokenizer.eos_id) != ends.end();
  if (!known && tokenizer.eos_id != kNoId) ends.push_back(tokenizer.eos_id);
  config.eos_id = ends.front();
  config.more_eos_ids.assign(ends.begin() + 1, ends.end());
}

}  // namespace

ModelChoice ChooseModel(const FamilyList& families, const TrainSettings& settings,
                        const TokenizerIdentity& tokenizer, bool gpu) {
  ModelChoice chosen;
  if (settings.model.empty() && (!settings.init.empty() || !settings.adapter.empty())) {
    const std::string start = settings.init.empty() ? BaseOfAdapter(ResolveCheckpoint(settings.adapter),
                                                                    "name the adapter's base with --init")
                                                    : settings.init;
    chosen = StartedModel(families, start, tokenizer);
    RequireAskedShape(families, settings, chosen.config, start);
  } else if (!settings.model.empty() && IsConfigPath(settings.model)) {
    chosen = ConfiguredModel(families, settings.model, tokenizer);
    RequireAskedShape(families, settings, chosen.config, settings.model);
  } else {
    chosen = PresetModel(families, settings.model, tokenizer, gpu);
    ChooseShape(families, settings.family_options, &chosen.config);
    RequireAskedShape(families, settings, chosen.config, chosen.name);
  }
  TakeSpecialIds(tokenizer, &chosen);
  chosen.is_causal = std::exchange(chosen.config.is_causal, true);
  return chosen;
}

void RequireAskedShape(const FamilyList& families, const TrainSettings& settings, const ModelConfig& config,
                       const std::string& whose) {
  RequireShape(families, settings.family_options, config, whose);
  if (settings.ten_scan.empty() || FamilyOf(config).scans()) return;
  throw Error(ErrorCode::kUsage, "--ten-scan", "has no meaning for " + whose + ", which has nothing to scan",
              "", "leave it out, or choose a model of the family ten with --model");
}

ModelChoice ChooseBase(const FamilyList& families, const TrainSettings& settings,
                       const std::string& checkpoint, const TokenizerIdentity& tokenizer, bool gpu) {
  TrainSettings with_base = settings;
  with_base.model.clear();
  if (with_base.init.empty()) with_base.init = BaseOfAdapter(checkpoint, "name the run's base with --init");
  ModelChoice chosen = ChooseModel(families, with_base, tokenizer, gpu);
  RequireBaseOfAdapter(checkpoint, chosen.start->folder, "name the run's base with --init",
                       chosen.start->provenance.at("files"));
  return chosen;
}

std::string BaseFolder(const StartModel& start) {
  return fs::absolute(start.folder).lexically_normal().string();
}

}  // namespace trainwright
