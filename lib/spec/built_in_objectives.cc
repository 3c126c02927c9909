#include "lib/spec/built_in_objectives.h"

#include "lib/spec/objective_names.h"

namespace trainwright {
namespace {

constexpr char kAnswersOnly[] =
    "the shards hold conversations (sft records); only their answers are predicted";

}  // namespace

ObjectiveDescription LmDescription() {
  return {.name = kLmObjective,
          .records = {{.kind = RecordKind::kLm, .why = "the shards hold text (lm records)"},
                      {.kind = RecordKind::kSft,
                       .why = kAnswersOnly,
                       .warning = "holds conversations (sft records), and --objective lm trains on their "
                                  "prompts too"}},
          .takes = {"z_loss", "label_smoothing", "tbptt", "max_batch_tokens", "packing", "group_by_length"},
          .settled = {{"loss_on", "all"}},
          .measures_tokens = true};
}

ObjectiveDescription SftDescription() {
  return {
      .name = kSftObjective,
      .records = {{.kind = RecordKind::kSft, .why = kAnswersOnly}},
      .refused = {{.kind = RecordKind::kLm,
                   .problem = "the shards hold text (lm records), which does not say what is an answer",
                   .hint = "make the stream with pretokenize --records sft, or train with --objective lm"}},
      .takes = {"loss_on", "z_loss", "label_smoothing", "tbptt", "max_batch_tokens", "packing",
                "group_by_length"},
      .measures_tokens = true};
}

std::vector<ObjectiveDescription> BuiltInObjectiveDescriptions() {
  return {LmDescription(), SftDescription(), GritDescription()};
}

const ObjectiveDescription* FindBuiltInObjective(const std::string& name) {
  static const std::vector<ObjectiveDescription> all = BuiltInObjectiveDescriptions();
  for (const ObjectiveDescription& objective : all) {
    if (objective.name == name) return &objective;
  }
  return nullptr;
}

const OwnOption* FindBuiltInOwnOption(const std::string& objective, const std::string& option) {
  const ObjectiveDescription* description = FindBuiltInObjective(objective);
  return description == nullptr ? nullptr : FindOwnOption(description->own, option);
}

bool NamesOwnFile(const std::string& objective, const std::string& option) {
  const OwnOption* found = FindBuiltInOwnOption(objective, option);
  return found != nullptr && found->names_file();
}

bool IsFreeOnResume(const std::string& objective, const std::string& option) {
  const OwnOption* found = FindBuiltInOwnOption(objective, option);
  return found != nullptr && found->free_on_resume;
}

}  // namespace trainwright
