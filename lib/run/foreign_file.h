/// The keys of another program's file, one after the other, and what became of them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/report/option_value.h"

namespace trainwright {

/// A key that says something.
struct ForeignKey {
  std::string name;                       ///< its path, joined by dots: "zero_optimization.stage"
  const nlohmann::json* value = nullptr;  ///< neither null nor ForeignSource::open_word
};

class ForeignFile;

/// What becomes of one key.
struct ForeignRule {
  std::string name;
  /// \throws Error{kUsage}
  std::function<void(const ForeignKey& key, ForeignFile* file)> take;
};

using ForeignRules = std::vector<ForeignRule>;

/// What is known of a file before its keys are looked at.
struct ForeignSource {
  std::string path;
  nlohmann::json root;    ///< an object
  std::string hint;       ///< of an unknown key that has no near name
  std::string open_word;  ///< a value that leaves a key to other options, besides null; empty: there is none
  /// Keys that no rule knows and that hold no mapping are this program's own: OptionsOfFile::ours.
  bool has_ours = false;
  /// Keys that other values of the file refer to. One that no rule knows and that holds a single value is
  /// there for their sake alone.
  std::set<std::string> variables = {};
  /// The line of a key, from 1; 0: unknown.
  std::function<int(const std::string& name)> line_of;
  /// A value as written in the file, where that is not the value itself (1e-4); empty: it is.
  std::function<std::string(const std::string& name)> text_of = {};
  GivenValue given = {};  ///< of what takes precedence over the file; not set: nothing does
};

/// One file while it is translated. The rules see its keys in the order of their names.
class ForeignFile {
 public:
  explicit ForeignFile(ForeignSource source) : source_(std::move(source)) {}

  /// Has each key that says something taken by its rule.
  /// \throws Error{kUsage} on a key without one that is not null
  void Take(const ForeignRules& rules);
  /// \returns nullopt when the file does not say it
  std::optional<ForeignKey> Find(const std::string& name) const;
  /// Whether it is there, saying nothing.
  bool IsLeftOpen(const std::string& name) const;

  /// The value that what takes precedence over the file gives an option; empty: none.
  std::string Given(const std::string& option) const {
    return source_.given ? source_.given(option) : std::string();
  }
  /// Whether that is another one than this, the file's: what the file means by its own, or says for it alone,
  /// does not count then.
  bool IsOverridden(const std::string& option, const std::string& value) const;

  /// Sets an option; a second time to the same value only.
  /// \throws Error{kUsage}
  void Give(const ForeignKey& key, const std::string& option, const std::string& value);
  /// What is no option.
  void GiveOther(const ForeignKey& key, const std::string& value);
  /// Leaves a key to the tool as one of its own.
  void LeaveToTool(const ForeignKey& key) { result_.ours.insert(key.name); }
  /// Adds a notice: the key, and what is to be said of it.
  void Tell(const ForeignKey& key, const std::string& what);
  /// The same, where the file's value of the option is not overridden.
  void TellWith(const std::string& option, const ForeignKey& key, const std::string& what);
  /// Adds the notice of a key that does not count because the option is overridden.
  void GiveWay(const ForeignKey& key, const std::string& option);
  /// One more of the keys that a single notice lists as those without effect.
  void Ignore(const ForeignKey& key) { ignored_.push_back(key.name); }
  /// \returns the error that names the key, for its caller to throw
  Error Refusal(const ForeignKey& key, const std::string& problem, const std::string& hint = "") const;
  /// Refuses a value in the same words, unless what overrides the file gives the option.
  void Refuse(const ForeignKey& key, const std::string& option, const std::string& problem,
              const std::string& hint = "") {
    result_.refused.emplace_back(option, Refusal(key, problem, hint));
  }
  /// "line 3"
  std::string PlaceOf(const std::string& name) const;
  /// The value of a key that holds a single one, as written.
  std::string TextOf(const ForeignKey& key) const;
  const std::string& path() const { return source_.path; }
  /// ", or "auto"": what a message about wanted values ends with; empty where there is no such word.
  std::string OrOpen() const;

  /// \param program whose file it is; empty: OptionsOfFile::defaults has none
  OptionsOfFile Result(const std::string& program = "",
                       const std::vector<std::pair<std::string, std::string>>& defaults = {}) const;

 private:
  void TakeObject(const nlohmann::json& object, const std::string& prefix, const ForeignRules& rules);
  bool SaysNothing(const nlohmann::json& value) const;
  Error Unknown(const std::string& name, const ForeignRules& rules) const;
  const nlohmann::json* Value(const std::string& name) const;
  std::string SourceOf(const std::string& name) const;

  ForeignSource source_;
  OptionsOfFile result_;
  std::vector<std::string> ignored_;
};

}  // namespace trainwright
