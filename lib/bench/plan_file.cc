#include "lib/bench/plan_file.h"

#include <yaml-cpp/yaml.h>

#include <set>
#include <string_view>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr std::string_view kLeversMark = "{levers}", kValueMark = "{value}";

/// A mapping whose fields are all known and read by name.
class Fields {
 public:
  Fields(const YAML::Node& node, const std::string& path, const std::set<std::string>& known)
      : node_(node), path_(path) {
    if (!node.IsMap()) Refuse(node, "must be a mapping with the fields " + Names(known));
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      if (!known.contains(key))
        Refuse(entry.first, "has the unknown field '" + key + "'; known: " + Names(known));
      if (!seen.insert(key).second) Refuse(entry.first, "has the field '" + key + "' twice");
    }
  }
  std::string Text(const std::string& name, bool required) const {
    const YAML::Node value = node_[name];
    if (!value) {
      if (required) Refuse(node_, "lacks the field '" + name + "'");
      return "";
    }
    if (!value.IsScalar() || value.Scalar().empty()) Refuse(value, "field '" + name + "' must be a text");
    return value.Scalar();
  }
  std::vector<YAML::Node> List(const std::string& name) const {
    const YAML::Node value = node_[name];
    if (!value) return {};
    if (!value.IsSequence() || value.size() == 0) Refuse(value, "field '" + name + "' must be a list");
    return {value.begin(), value.end()};
  }
  [[noreturn]] void Refuse(const YAML::Node& where, const std::string& problem) const {
    throw Error(ErrorCode::kUsage, path_, problem, "line " + std::to_string(where.Mark().line + 1));
  }

 private:
  static std::string Names(const std::set<std::string>& known) {
    std::string text;
    for (const std::string& name : known) text += (text.empty() ? "" : ", ") + name;
    return text;
  }
  YAML::Node node_;
  std::string path_;
};

/// The text with a value in place of each mark.
std::string Replaced(std::string text, std::string_view mark, const std::string& value) {
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size()) {
    text.replace(at, mark.size(), value);
  }
  return text;
}

/// One, or of a sweep one for each of its values.
std::vector<Lever> LeversOf(const YAML::Node& node, const std::string& path) {
  const Fields fields(node, path, {"name", "add", "values"});
  const std::string name = fields.Text("name", true), add = fields.Text("add", true);
  const std::vector<YAML::Node> values = fields.List("values");
  if (values.empty() != (add.find(kValueMark) == std::string::npos)) {
    fields.Refuse(node, "must have values, and say by " + std::string(kValueMark) +
                            " in the field 'add' where they go, or neither");
  }
  if (values.empty()) return {Lever{.name = name, .add = add}};
  std::vector<Lever> levers;
  std::set<std::string> seen;
  for (const YAML::Node& value : values) {
    if (!value.IsScalar() || value.Scalar().empty()) fields.Refuse(value, "values must be texts or numbers");
    if (!seen.insert(value.Scalar()).second) {
      fields.Refuse(value, "names the value " + value.Scalar() + " twice");
    }
    levers.push_back(
        {name + " " + value.Scalar(), Replaced(add, kValueMark, value.Scalar()), /*of_sweep=*/true});
  }
  return levers;
}

}  // namespace

PlanFile ReadPlanFile(const std::string& path) {
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAllFromFile(path);
  } catch (const YAML::BadFile&) {
    throw Error(ErrorCode::kIo, path, "cannot be read");
  } catch (const YAML::Exception& error) {
    throw Error(ErrorCode::kUsage, path, "is no YAML: " + error.msg,
                "line " + std::to_string(error.mark.line + 1));
  }
  const YAML::Node document = documents.empty() ? YAML::Node() : documents[0];
  const Fields fields(document, path,
                      {"stages", "base", "prepare", "levers", "metrics", "metric-file", "metric-skip"});
  for (size_t i = 1; i < documents.size(); ++i) {
    if (!documents[i].IsNull()) fields.Refuse(documents[i], "holds a second document, after ---");
  }
  PlanFile plan;
  std::set<std::string> names;
  for (const YAML::Node& node : fields.List("stages")) {
    const Fields stage(node, path, {"name", "before", "after", "prepare"});
    const std::string name = stage.Text("name", true), prepare = stage.Text("prepare", false);
    if (!names.insert(name).second) stage.Refuse(node, "names two stages '" + name + "'");
    plan.stages.push_back({name,
                           {name + " before", stage.Text("before", true), prepare},
                           {name + " after", stage.Text("after", true), prepare}});
  }
  plan.base = fields.Text("base", false);
  plan.prepare = fields.Text("prepare", false);
  std::set<std::string> variants = {"base"};
  for (const YAML::Node& node : fields.List("levers")) {
    for (Lever& lever : LeversOf(node, path)) {
      if (!variants.insert(lever.name).second) {
        fields.Refuse(node, "names two variants '" + lever.name + "'");
      }
      plan.levers.push_back(std::move(lever));
    }
  }
  for (const YAML::Node& node : fields.List("metrics")) {
    if (!node.IsScalar()) fields.Refuse(node, "metrics must be names");
    plan.metrics.names.push_back(node.Scalar());
  }
  const std::string file = fields.Text("metric-file", false), skip = fields.Text("metric-skip", false);
  if (!file.empty()) plan.metrics.file = file;
  if (!skip.empty()) {
    if (skip.find_first_not_of("0123456789") != std::string::npos || skip.size() > 9) {
      fields.Refuse(document["metric-skip"], "metric-skip must be a number of records");
    }
    plan.metrics.skip = std::stoll(skip);
  }
  if (plan.stages.empty() == plan.base.empty()) {
    fields.Refuse(document, "must have either stages, or base and levers");
  }
  for (const char* of_base : {"levers", "prepare"}) {
    if (plan.base.empty() && document[of_base]) {
      fields.Refuse(document[of_base], "field '" + std::string(of_base) + "' is of base, and there is none");
    }
  }
  if (!plan.base.empty()) {
    if (plan.levers.empty()) fields.Refuse(document, "lacks the field 'levers'");
    if (plan.base.find(kLeversMark) == std::string::npos) {
      fields.Refuse(document["base"], "base must say by " + std::string(kLeversMark) + " where levers go");
    }
  }
  return plan;
}

std::vector<Variant> AblationVariants(const PlanFile& plan, AblationMode mode) {
  const auto with = [&](const std::string& levers) { return Replaced(plan.base, kLeversMark, levers); };
  std::vector<Variant> variants = {{"base", with(""), plan.prepare}};
  std::string all;
  for (const Lever& lever : plan.levers) {
    all += (all.empty() ? "" : " ") + lever.add;
    const bool cumulative = mode == AblationMode::kCumulative;
    if (cumulative && lever.of_sweep) {
      throw Error(ErrorCode::kUsage, "--ablate cumulative",
                  "cannot add up the values of a sweep (" + lever.name + ")", "",
                  "compare them alone: --ablate one-at-a-time");
    }
    variants.push_back(
        {(cumulative ? "+ " : "") + lever.name, with(cumulative ? all : lever.add), plan.prepare});
  }
  return variants;
}

}  // namespace trainwright
