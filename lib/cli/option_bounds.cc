#include "lib/cli/option_bounds.h"

#include <algorithm>
#include <cstdint>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// One of two bounds.
class Bound {
 public:
  Bound(const std::string& key, CLI::App& app, const Origins& origins, std::vector<EffectiveOption>* options)
      : key_(key),
        option_(*app.get_option("--" + key)),
        effective_(*std::find_if(options->begin(), options->end(),
                                 [&](const EffectiveOption& option) { return option.doc.key == key; })) {
    const auto given = origins.find(key);
    if (given == origins.end() || HasDefault(effective_)) return;
    origin_ = given->second.first;
    source_ = given->second.second;
  }

  OptionOrigin origin() const { return origin_; }
  const std::string& text() const { return effective_.values.back(); }
  int64_t value() const { return option_.as<int64_t>(); }
  std::string flag() const { return "--" + key_; }
  /// For messages: the variable, or the flag.
  std::string object() const { return origin_ == OptionOrigin::kEnvironment ? source_ : flag(); }
  /// For messages: the line of a file; empty: it is of none.
  std::string place() const { return origin_ == OptionOrigin::kEnvironment ? "" : source_; }

  void Become(const Bound& other, std::vector<std::string>* notices) {
    if (origin_ != OptionOrigin::kDefault) {
      notices->push_back((source_.empty() ? "" : source_ + ": ") + flag() + " " + text() + ": " +
                         other.flag() + " " + other.text() + " overrides it");
    }
    effective_.values = other.effective_.values;
    option_.clear();
    option_.add_result(text());
    option_.run_callback();
  }

 private:
  const std::string& key_;
  CLI::Option& option_;
  EffectiveOption& effective_;
  OptionOrigin origin_ = OptionOrigin::kDefault;
  std::string source_;
};

}  // namespace

void SettleBounds(const ToolInfo& info, CLI::App& app, const Origins& origins,
                  std::vector<EffectiveOption>* options, std::vector<std::string>* notices) {
  for (const auto& [least_key, most_key] : info.bounds) {
    Bound least(least_key, app, origins, options), most(most_key, app, origins, options);
    if (least.value() <= most.value()) continue;
    if (least.origin() == most.origin()) {
      throw Error(ErrorCode::kUsage, least.object(),
                  least.text() + " is more than " + most.object() + " " + most.text(), least.place());
    }
    if (least.origin() > most.origin()) {
      most.Become(least, notices);
    } else {
      least.Become(most, notices);
    }
  }
}

}  // namespace trainwright
