/// One option of a training plan: all that the program knows of it. Storing a plan, reading it, comparing it
/// with the command line on resume and explaining it go over rows of this type (lib/run/plan_codec.h,
/// lib/run/resumed_plan.h), and know no option by name.
///
/// Values pass as JSON: as the training state stores them, which is also as they are reported.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/formats/json_fields.h"
#include "lib/run/train_plan.h"
#include "lib/run/train_settings.h"

namespace trainwright {

/// What a training state means that lacks an option, because it was written before there was one. Has no
/// default, so a row that leaves it out does not compile.
class OldStates {
 public:
  /// For what trainwright.state/1 had already: a state without it is refused.
  static OldStates AllHaveIt() { return OldStates(Since::kFirst, nullptr); }
  /// For what trainwright.state/2 has from its beginning: `value` in a state of version 1, a later one
  /// without it is refused.
  static OldStates FirstLacksIt(nlohmann::json value) { return OldStates(Since::kSecond, std::move(value)); }
  /// For what was added since: `value` in any state that lacks it. It is stored where it differs from that.
  static OldStates AnyMayLackIt(nlohmann::json value) { return OldStates(Since::kLater, std::move(value)); }

  /// What states of version 1 mean; nullopt: they have it.
  std::optional<nlohmann::json> in_first() const {
    return since_ == Since::kFirst ? std::nullopt : std::optional(value_);
  }
  /// What states of the present version mean; nullopt: they have it.
  std::optional<nlohmann::json> in_present() const {
    return since_ == Since::kLater ? std::optional(value_) : std::nullopt;
  }

 private:
  enum class Since { kFirst, kSecond, kLater };
  OldStates(Since since, nlohmann::json value) : since_(since), value_(std::move(value)) {}
  Since since_;
  nlohmann::json value_;
};

/// Where an option's value lies in a plan, and what the user asked.
struct PlanValue {
  std::function<nlohmann::ordered_json(const TrainPlan&)> get;
  /// \throws Error or nlohmann::json::exception on a value of another kind, naming `name`
  std::function<void(const nlohmann::json& value, const std::string& name, TrainPlan* plan)> set;
  /// Null: nothing, or what other options decide (lib/run/run_planner.h).
  std::function<nlohmann::json(const TrainSettings&)> asked = [](const TrainSettings&) { return nullptr; };
};

/// What the user may ask.
struct PlanRange {
  bool (*holds)(double value) = [](double) { return true; };
  std::string problem = {};  ///< what the message says after the value
};

/// Sizes that a stored plan may hold: far above any run, and low enough that products of two are no overflow.
struct StoredSizes {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

/// A flag of a resumed run that asks for another run.
struct PlanDifference {
  std::string option;         ///< without dashes
  std::string asked, stored;  ///< as the message says them
};

/// Whether every run takes an option, or only those of some objectives or optimizers, which say so.
enum class TakenBy { kEveryRun, kObjective, kOptimizer };

/// Immutable once made; safe to use from several threads.
struct PlanOption {
  std::string stored;  ///< its name in a training state
  /// Of the command line, without dashes; empty: it follows from other rows or from what runs the training,
  /// and is not reported.
  std::vector<std::string> options = {};
  OldStates old_states;
  PlanValue value;
  PlanRange range = {};
  StoredSizes stored_sizes = {};
  TakenBy taken_by = TakenBy::kEveryRun;
  /// Whether a resumed run may have another value, as ReconcilePlan allows it.
  bool free_on_resume = false;
  /// Whether a branch has its parent's value, as PlanBranch demands it.
  bool fixed_in_branch = false;
  /// What the command line asks for that the plan does not have; where it is empty, `value.asked` is compared
  /// with `value.get`.
  std::function<std::optional<PlanDifference>(const TrainSettings&, const TrainPlan&)> difference = {};
  /// Whether the option means something in this plan, whose objective and optimizer take it; where it is
  /// empty: in all.
  std::function<bool(const TrainPlan&)> told_when = {};
  /// The options, by name, that make the same plan; where it is empty, the first of `options` with the stored
  /// value.
  std::function<nlohmann::ordered_json(const TrainPlan&)> told = {};
  /// Its line among those of config.yaml; those without one follow in the table's order.
  int config_line = std::numeric_limits<int>::max();
};

/// In the order in which a state stores them. Names are unique.
using PlanTable = std::vector<PlanOption>;

/// A value as a message about a plan says it.
std::string AskedText(const nlohmann::json& value);
std::string StoredText(const nlohmann::json& value);

/// The difference between what was asked, null where nothing was, and what is stored.
std::optional<PlanDifference> DifferenceOf(const std::string& option, const nlohmann::json& asked,
                                           const nlohmann::json& stored);
/// What the settings ask of an option that the plan does not have.
std::optional<PlanDifference> DifferenceOf(const PlanOption& option, const TrainSettings& settings,
                                           const TrainPlan& plan);

/// A JSON value as a number, a truth value or text. A whole number must be written as one and fit its type: a
/// plain conversion would wrap or cut it.
/// \throws Error{kBadInput} naming `name`; nlohmann::json::exception on a value of another type
template <typename Value>
Value ReadPlanValue(const nlohmann::json& json, const std::string& name) {
  if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
    if (!IsWholeNumber<Value>(json)) {
      throw Error(ErrorCode::kBadInput, name, "is no whole number in range: " + json.dump().substr(0, 40));
    }
  }
  return json.get<Value>();
}

/// The member that a path of pointers leads to. The first owner may derive from `base`'s class: a test's plan
/// with one more option is a TrainPlan to everybody else.
template <typename Base, typename Owner, typename Value, typename... Rest>
const auto& MemberAt(const Base& base, Value Owner::*member, Rest... rest) {
  const Value& value = static_cast<const Owner&>(base).*member;
  if constexpr (sizeof...(rest) == 0) {
    return value;
  } else {
    return MemberAt(value, rest...);
  }
}
template <typename Base, typename Owner, typename Value, typename... Rest>
auto& MemberAt(Base* base, Value Owner::*member, Rest... rest) {
  Value& value = static_cast<Owner*>(base)->*member;
  if constexpr (sizeof...(rest) == 0) {
    return value;
  } else {
    return MemberAt(&value, rest...);
  }
}

/// A number, a truth value or text of the plan, which no option of its own asks for.
template <typename... Path>
PlanValue Kept(Path... path) {
  return {.get = [=](const TrainPlan& plan) { return nlohmann::ordered_json(MemberAt(plan, path...)); },
          .set =
              [=](const nlohmann::json& value, const std::string& name, TrainPlan* plan) {
                auto& member = MemberAt(plan, path...);
                member = ReadPlanValue<std::decay_t<decltype(member)>>(value, name);
              }};
}

/// A number that the user may ask for.
template <typename Owner, typename Number, typename... Path>
PlanValue Asked(std::optional<Number> Owner::*setting, Path... path) {
  PlanValue value = Kept(path...);
  value.asked = [=](const TrainSettings& settings) {
    const std::optional<Number>& asked = MemberAt(settings, setting);
    return asked ? nlohmann::json(*asked) : nlohmann::json();
  };
  return value;
}

/// A switch, whose absence says nothing.
template <typename Owner, typename... Path>
PlanValue Asked(bool Owner::*setting, Path... path) {
  PlanValue value = Kept(path...);
  value.asked = [=](const TrainSettings& settings) {
    return MemberAt(settings, setting) ? nlohmann::json(true) : nlohmann::json();
  };
  return value;
}

/// Text, of which an empty one says nothing.
template <typename Owner, typename... Path>
PlanValue Asked(std::string Owner::*setting, Path... path) {
  PlanValue value = Kept(path...);
  value.asked = [=](const TrainSettings& settings) {
    const std::string& asked = MemberAt(settings, setting);
    return asked.empty() ? nlohmann::json() : nlohmann::json(asked);
  };
  return value;
}

/// One of a set of names.
/// \param name of a value
/// \param parse the value of a name; throws an Error that names its second argument
/// \param asked the name that was asked for; null: none
template <typename Value, typename... Path>
PlanValue Named(std::function<std::string(Value)> name,
                std::function<Value(const std::string& name, const std::string& of)> parse,
                std::function<nlohmann::json(const TrainSettings&)> asked, Path... path) {
  return {.get = [=](const TrainPlan& plan) { return nlohmann::ordered_json(name(MemberAt(plan, path...))); },
          .set = [=](const nlohmann::json& value, const std::string& of,
                     TrainPlan* plan) { MemberAt(plan, path...) = parse(value.get<std::string>(), of); },
          .asked = asked};
}

}  // namespace trainwright
