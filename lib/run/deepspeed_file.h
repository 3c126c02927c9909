/// The keys of a DeepSpeed configuration, one after the other, and what became of them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/report/option_value.h"

namespace trainwright {

/// A key that says something.
struct DeepSpeedKey {
  std::string name;                       ///< its path, joined by dots: "zero_optimization.stage"
  const nlohmann::json* value = nullptr;  ///< neither null nor "auto"
};

class DeepSpeedFile;

/// What becomes of one key.
struct DeepSpeedRule {
  std::string name;
  /// \throws Error{kUsage}
  std::function<void(const DeepSpeedKey& key, DeepSpeedFile* file)> take;
};

/// One file while it is translated. The rules see its keys in the order of their names.
class DeepSpeedFile {
 public:
  /// \param text outlives this
  /// \throws Error{kUsage} when it is not a JSON object
  DeepSpeedFile(std::string_view text, const std::string& path);

  /// Has each key that says something taken by its rule.
  /// \throws Error{kUsage} on a key without one
  void Take(const std::vector<DeepSpeedRule>& rules);
  /// \returns nullopt when the file does not say it
  std::optional<DeepSpeedKey> Find(const std::string& name) const;
  /// Whether it is there, saying nothing.
  bool IsLeftOpen(const std::string& name) const;

  /// Sets an option; a second time to the same value only.
  /// \throws Error{kUsage}
  void Give(const DeepSpeedKey& key, const std::string& option, const std::string& value);
  /// What is no option.
  void GiveOther(const DeepSpeedKey& key, const std::string& value);
  /// Adds a notice: the key, and what is to be said of it.
  void Tell(const DeepSpeedKey& key, const std::string& what);
  /// \returns the error that names the key, for its caller to throw
  Error Refusal(const DeepSpeedKey& key, const std::string& problem, const std::string& hint = "") const;
  /// "line 3"
  std::string PlaceOf(const std::string& name) const;
  const std::string& path() const { return path_; }

  const OptionsOfFile& result() const { return result_; }

 private:
  void TakeObject(const nlohmann::json& object, const std::string& prefix,
                  const std::vector<DeepSpeedRule>& rules);
  Error Unknown(const std::string& name, const std::vector<DeepSpeedRule>& rules) const;
  const nlohmann::json* Value(const std::string& name) const;
  std::string SourceOf(const std::string& name) const;

  std::string_view text_;
  std::string path_;
  nlohmann::json root_;
  OptionsOfFile result_;
};

/// The rules of all keys that are known.
const std::vector<DeepSpeedRule>& DeepSpeedRules();

}  // namespace trainwright
