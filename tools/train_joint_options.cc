#include "tools/train_joint_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/cli/option_synonym.h"
#include "lib/launch/rank_place.h"
#include "lib/run/foreign_optimizer.h"
#include "lib/spec/optimizer_options.h"

namespace trainwright {
namespace {

std::optional<double> NumberIn(const std::string& text) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The entries of a file while they are settled.
class JointKeys {
 public:
  JointKeys(std::vector<ConfigEntry> entries, const ConfigSurroundings& around)
      : entries_(std::move(entries)), around_(around) {}

  std::vector<ConfigEntry> Settle() {
    SettleSwitches();
    SettleLength();
    SettleEvaluation();
    SettleSaving();
    SettleLogging();
    SettleTwoNames();
    SettleOptimizer();
    SettleAverage();
    SettleSchedule();
    SettleWarmup();
    SettleDecay();
    SettleLeastRate();
    return std::move(entries_);
  }

 private:
  /// The first entry of one of these names; null: there is none.
  ConfigEntry* Find(std::initializer_list<const char*> names) {
    for (const char* const name : names) {
      const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const ConfigEntry& entry) {
        return DashedName(entry.key) == name;
      });
      if (found != entries_.end()) return &*found;
    }
    return nullptr;
  }

  /// nullopt: the entry is none, or what it holds is no number, which is told where it is converted.
  static std::optional<double> NumberOf(const ConfigEntry* entry) {
    if (entry == nullptr || entry->is_list || entry->values.empty()) return std::nullopt;
    return NumberIn(entry->values.front());
  }

  bool IsGiven(const std::string& key) const { return !around_.given(key).empty(); }

  void Tell(const ConfigEntry& entry, const std::string& sentence) {
    around_.notices->push_back(PlaceOf(entry, around_.path) + " " + sentence);
  }

  Error Refusal(const ConfigEntry& entry, const std::string& problem, const std::string& hint) const {
    return {ErrorCode::kUsage, PlaceOf(entry, around_.path), problem, "", hint};
  }

  /// Takes the entry away where there is one, and says why, unless it is a number that says nothing.
  void Drop(const ConfigEntry* entry, const std::string& why) {
    if (entry == nullptr) return;
    if (NumberOf(entry).value_or(1) > 0) Tell(*entry, "has no effect: " + why);
    Erase(entry);
  }

  /// Takes the entry away where there is one: an option that goes before the file overrides it.
  void GiveWay(const ConfigEntry* entry, const std::string& option) {
    if (entry == nullptr) return;
    if (NumberOf(entry).value_or(1) > 0)
      around_.notices->push_back(PlaceOf(*entry, around_.path) + ": --" + option + " overrides it");
    Erase(entry);
  }

  void Erase(const ConfigEntry* entry) { entries_.erase(entries_.begin() + (entry - entries_.data())); }

  static void Rename(ConfigEntry* entry, const std::string& key) {
    entry->in_file = entry->name_in_file();
    entry->key = key;
  }

  /// Gives one of our keys as `cause` means it, in its place.
  void Imply(ConfigEntry cause, const std::string& key, const std::string& value, const std::string& why) {
    Rename(&cause, key);
    cause.values = {value};
    Tell(cause, "is read as " + key + ": " + value + ", too: " + why);
    entries_.push_back(std::move(cause));
  }

  /// The value of an entry, true and false in one spelling; empty: it is none, or a list.
  static std::string TextOf(const ConfigEntry* entry) {
    return entry == nullptr || entry->is_list ? "" : PlainWord(entry->values.front());
  }

  /// Of switches for one option those that are off give way to one that is on, or to the option's own key; of
  /// several that are off one says it.
  void SettleSwitches() {
    struct Switches {
      const char* option;
      std::vector<const char*> names;
    };
    for (const auto& [option, switches] :
         {Switches{"mixed-precision", {"bf16", "fp16"}},
          Switches{"checkpoint-activations", {"gradient-checkpointing", "activation-checkpointing"}},
          Switches{"quant", {"load-in-4bit"}}, Switches{"keep-best", {"load-best-model-at-end"}}}) {
      bool is_said = Find({option}) != nullptr;
      for (const char* const name : switches) is_said = is_said || TextOf(Find({name})) == "true";
      for (const char* const name : switches) {
        if (TextOf(Find({name})) != "false") continue;
        if (is_said) Erase(Find({name}));
        is_said = true;
      }
    }
  }

  void SettleLength() {
    for (const char* const length : {"steps", "epochs", "tokens"}) {
      if (!IsGiven(length)) continue;
      for (const char* const own : {"max-steps", "num-train-epochs", "num-epochs"})
        GiveWay(Find({own}), length);
    }
    if (NumberOf(Find({"max-steps"})).value_or(0) <= 0) return;
    for (const char* const epochs : {"num-train-epochs", "num-epochs"})
      Drop(Find({epochs}), "max_steps overrides it");
  }

  /// Steps below 1 are a share of the run. Called where they count.
  void SettleInterval(const char* name, const std::string& option) {
    ConfigEntry* const entry = Find({name});
    const std::optional<double> number = NumberOf(entry);
    if (!number || IsGiven(option)) return;
    if (*number >= 1 && *number < 1e15 && *number == std::floor(*number)) {
      entry->values = {std::to_string(static_cast<int64_t>(*number))};  // 500.0 is 500
    } else if (*number > 0 && *number < 1) {
      const std::optional<double> length =
          IsGiven("steps") ? NumberIn(around_.given("steps")) : NumberOf(Find({"max-steps"}));
      if (length.value_or(0) <= 0)
        throw Refusal(*entry, "is a share of the run, whose steps are not said",
                      "give --" + option + ", or max_steps");
      entry->values = {std::to_string(static_cast<int64_t>(std::ceil(*number * *length)))};
      Tell(*entry, "is " + entry->values.front() + " steps: below 1 it is a share of the run");
    }
  }

  /// eval_steps count with eval_strategy steps alone, and are logging_steps where they are not said.
  void SettleEvaluation() {
    const ConfigEntry* const found = Find({"eval-strategy", "evaluation-strategy"});
    if (found == nullptr) return SettleInterval("eval-steps", "eval-every");
    const ConfigEntry strategy = *found;
    const std::string kind = TextOf(&strategy);
    if (IsGiven("eval-every")) {
      GiveWay(Find({DashedName(strategy.key).c_str()}), "eval-every");
    } else if (kind == "no" || kind == "false") {
      Drop(Find({"eval-steps"}), "eval_strategy is no");
      EvaluateAtEnds(strategy, "evaluations are before and after the run");
    } else if (kind == "epoch" && TextOf(Find({"save-strategy"})) == "epoch" && KeepsBest()) {
      Drop(Find({"eval-steps"}), "eval_strategy is epoch");
      EvaluateAtEnds(strategy, "each checkpoint is evaluated, which save_strategy makes after each epoch");
    } else if (kind == "epoch") {
      throw Refusal(strategy, "is epoch: evaluations come by the number of steps", "give --eval-every N");
    } else if (Find({"eval-steps"}) != nullptr) {
      SettleInterval("eval-steps", "eval-every");
    } else if (const ConfigEntry* const logging = Find({"logging-steps"});
               kind == "steps" && logging != nullptr && Find({"eval-every", "eval-interval"}) == nullptr) {
      SettleInterval("logging-steps", "log-every");
      Imply(*logging, "eval-every", TextOf(logging), "eval_steps are logging_steps where they are not said");
    }
  }

  bool KeepsBest() { return TextOf(Find({"load-best-model-at-end"})) == "true"; }

  /// Makes a strategy --eval-every 0, which is said where there is something to evaluate on.
  void EvaluateAtEnds(const ConfigEntry& strategy, const std::string& why) {
    ConfigEntry* const entry = Find({DashedName(strategy.key).c_str()});
    if (IsGiven("eval-data") || IsGiven("eval-split") || Find({"eval-data", "eval-split"}) != nullptr) {
      Rename(entry, "eval-every");
      entry->values = {"0"};
      Tell(*entry, "is read as eval-every: 0: " + why);
    } else {
      Erase(entry);
    }
  }

  /// save_steps count with save_strategy steps alone; best saves where it evaluates.
  void SettleSaving() {
    const std::string kind = TextOf(Find({"save-strategy"}));
    if (kind.empty() || kind == "steps") return SettleInterval("save-steps", "save-every");
    if (kind == "best") return SettleSavingOfBest();
    if (IsGiven("save-every")) return GiveWay(Find({"save-strategy"}), "save-every");
    Drop(Find({"save-steps"}), "save_strategy is " + kind);
  }

  void SettleSavingOfBest() {
    const std::string why = "save_strategy best saves where it evaluates";
    Drop(Find({"load-best-model-at-end"}), "save_strategy best keeps it, too");
    Drop(Find({"save-steps"}), "save_strategy is best");
    if (!IsGiven("save-every")) {
      const std::string given = around_.given("eval-every");
      const ConfigEntry* const steps = Find({"eval-steps", "eval-every", "eval-interval"});
      if (!given.empty()) {
        Imply(*Find({"save-strategy"}), "save-every", given, why);
      } else if (steps != nullptr) {
        Imply(*steps, "save-every", TextOf(steps), why);
      }
    }
    ConfigEntry* const entry = Find({"save-strategy"});
    Rename(entry, "keep-best");
    entry->values = {"1"};
    Tell(*entry, "is read as keep-best: 1");
  }

  void SettleLogging() {
    const std::string kind = TextOf(Find({"logging-strategy"}));
    if (kind.empty() || kind == "steps") return SettleInterval("logging-steps", "log-every");
    Drop(Find({"logging-steps"}), "logging_strategy is " + kind);
  }

  /// Two names of one field, which a file may have both.
  void SettleTwoNames() {
    for (const auto& [older, newer] :
         {std::pair("gradient-checkpointing", "activation-checkpointing"), {"no-cuda", "use-cpu"}}) {
      const ConfigEntry* const entry = Find({older});
      if (entry != nullptr && TextOf(entry) == TextOf(Find({newer}))) Erase(entry);
    }
  }

  /// Numbers of Adam have no effect with an optimizer that takes none, and SGD has no momentum. What is
  /// otherwise of moments in 8 bits is said.
  void SettleOptimizer() {
    const ConfigEntry* const found = Find({"optim"});
    const std::string named = OptimizerNamed(TextOf(found));
    const std::string given = around_.given("optimizer");
    const bool is_sgd = given.empty() && named == "sgd";
    const std::string ours = !given.empty() ? given : named.empty() ? kDefaultOptimizer : named;
    if (given.empty() && named == "adamw8bit") Tell(*found, kEmbeddingsInEightBits);
    for (const auto& [theirs, option] :
         {std::pair("adam-beta1", "beta1"), {"adam-beta2", "beta2"}, {"adam-epsilon", "adam-eps"}}) {
      if (found != nullptr && (is_sgd || !OptimizerTakes(ours, option)))
        Drop(Find({theirs}), "the optimizer does not take it");
    }
    const bool says_momentum = IsGiven("beta1") || IsGiven("cycle-momentum") || IsGiven("resume") ||
                               Find({"beta1", "cycle-momentum"}) != nullptr;
    if (is_sgd && !says_momentum) Imply(*Find({"optim"}), "beta1", "0", "Hugging Face's SGD has no momentum");
  }

  /// The mean over the tokens of one rank is that over all, and some versions of transformers 4 write false
  /// of any run.
  void SettleAverage() {
    const ConfigEntry* const average = Find({"average-tokens-across-devices"});
    const std::string given = around_.given("nproc");
    const std::string ranks = given.empty() ? TextOf(Find({"nproc"})) : given;
    const bool is_one = (ranks.empty() || ranks == "1") && !RankPlaceFromEnvironment();
    if (TextOf(average) == "false" && is_one)
      Drop(average, "the loss of a step is the mean over its tokens on all ranks");
  }

  /// What Hugging Face's schedules are beside their curves, unless the file or who goes before it says it.
  void SettleSchedule() {
    const ConfigEntry* const found = Find({"lr-scheduler-type"});
    if (found == nullptr || found->values.size() != 1 || IsGiven("schedule")) return;
    const ConfigEntry type = *found;
    const std::string& name = type.values.front();
    const bool resumes = IsGiven("resume");  // the run has what it began with
    if (name == "constant") {
      for (const char* const warmup : {"warmup-steps", "warmup-ratio"})
        Drop(Find({warmup}), "lr_scheduler_type constant has no warm-up; constant_with_warmup has");
      const bool says_warmup =
          Find({"warmup", "warmup-iters"}) != nullptr || IsGiven("warmup") || IsGiven("warmup-ratio");
      if (!says_warmup && !resumes) Imply(type, "warmup", "0", "Hugging Face's constant has no warm-up");
    } else if (name == "warmup_stable_decay") {
      if (Find({"lr-scheduler-kwargs.decay-type"}) == nullptr)
        Tell(type,
             "falls as 1 - sqrt here: lr_scheduler_kwargs.decay_type may say 1-sqrt, and is cosine there");
    } else if (name == "linear" || name == "cosine") {
      const bool says_least =
          Find({"min-lr", "min-lr-ratio", "lr-scheduler-kwargs.min-lr", "lr-scheduler-kwargs.min-lr-rate",
                "lr-scheduler-kwargs.min-lr-ratio"}) != nullptr;
      if (!says_least && !IsGiven("min-lr-ratio") && !resumes)
        Imply(type, "min-lr-ratio", "0", "Hugging Face's " + name + " ends at 0");
    }
  }

  /// Steps of 0 leave warm-up to the ratio, below 1 they are one.
  void SettleWarmup() {
    if (IsGiven("warmup-ratio")) GiveWay(Find({"warmup-steps"}), "warmup-ratio");
    if (IsGiven("warmup")) GiveWay(Find({"warmup-ratio"}), "warmup");
    const std::optional<double> number = NumberOf(Find({"warmup-steps"}));
    if (!number) return;
    if (*number == 0 && Find({"warmup-ratio"}) != nullptr) {
      Drop(Find({"warmup-steps"}), "");
    } else if (*number > 0) {
      Drop(Find({"warmup-ratio"}), "warmup_steps overrides it");
      ConfigEntry* const steps = Find({"warmup-steps"});
      if (*number >= 1 || IsGiven("warmup")) return;
      Rename(steps, "warmup-ratio");
      Tell(*steps, "is read as warmup-ratio: below 1 it is a share of the run");
    }
  }

  /// nanoGPT's cosine ends at a step of its own, which here is the run's last.
  void SettleDecay() {
    const ConfigEntry* const found = Find({"lr-decay-iters"});
    if (found == nullptr) return;
    const ConfigEntry decay = *found;
    const ConfigEntry* const length = Find({"max-iters", "max-steps", "num-steps", "train-steps", "steps"});
    const bool overridden = IsGiven("steps");
    const std::optional<double> steps = overridden ? NumberIn(around_.given("steps")) : NumberOf(length);
    const std::string hint =
        "make max_iters the same, or leave it out; --schedule wsd has a decay of its own, --decay-steps";
    if (!steps)
      throw Refusal(decay, "is where the learning rate has fallen, and max_iters is not said", hint);
    for (const char* const other : {"epochs", "tokens"}) {
      if (IsGiven(other) && !overridden)
        throw Refusal(
            decay,
            std::string("is not --") + other + ": here the learning rate falls until the end of the run",
            hint);
    }
    if (NumberOf(&decay) != steps) {
      const std::string name = overridden ? "--steps" : length->name_in_file();
      throw Refusal(decay, "is not " + name + ": here the learning rate falls until the end of the run",
                    hint);
    }
    const bool has_schedule =
        Find({"schedule", "lr-scheduler-type", "lr-schedule", "scheduler"}) != nullptr || IsGiven("schedule");
    if (!has_schedule) Imply(decay, "schedule", "cosine", "nanoGPT's schedule is one");
  }

  void SettleLeastRate() {
    ConfigEntry* const least = Find({"min-lr", "lr-scheduler-kwargs.min-lr"});
    if (least == nullptr) return;
    if (IsGiven("min-lr-ratio")) return GiveWay(least, "min-lr-ratio");
    const std::string hint = "give --min-lr-ratio in place of it";
    const std::string given = around_.given("lr");
    const std::optional<double> peak =
        given.empty() ? NumberOf(Find({"learning-rate", "max-lr", "lr"})) : NumberIn(given);
    const std::optional<double> rate = NumberOf(least);
    if (!peak) throw Refusal(*least, "is a share of learning_rate here, which is not said", hint);
    if (!rate || !(*rate >= 0 && *rate <= *peak && *peak > 0))
      throw Refusal(*least, "must lie between 0 and the learning rate, " + nlohmann::json(*peak).dump(),
                    hint);
    Rename(least, "min-lr-ratio");
    least->values = {nlohmann::json(*rate / *peak).dump()};
    Tell(*least, "is read as min-lr-ratio: " + least->values.front() + ", its share of the learning rate");
  }

  std::vector<ConfigEntry> entries_;
  const ConfigSurroundings& around_;
};

}  // namespace

std::vector<ConfigEntry> SettleKeysOfTrainers(std::vector<ConfigEntry> entries,
                                              const ConfigSurroundings& around) {
  return JointKeys(std::move(entries), around).Settle();
}

}  // namespace trainwright
