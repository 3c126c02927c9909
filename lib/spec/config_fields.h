/// One config.json as its reader sees it: typed access that names file and field in errors, and a check that
/// nothing in it was left unread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace trainwright {

class ConfigFields {
 public:
  /// \param object outlives this
  /// \param path, hint of messages
  ConfigFields(const nlohmann::json& object, std::string path, std::string hint)
      : ConfigFields(object, std::move(path), std::move(hint), "") {}
  /// The fields of an object within the file.
  /// \param object outlives what is returned
  /// \param prefix of field names in messages
  ConfigFields Within(const nlohmann::json& object, const std::string& prefix) const {
    return {object, path_, hint_, prefix};
  }

  /// \throws Error{kBadInput}, as all that follow do
  [[noreturn]] void Refuse(const std::string& field, const std::string& problem) const;
  /// A field that is known and has a value that makes no model.
  /// \param hint in the place of the reader's; may be empty
  [[noreturn]] void RefuseValue(const std::string& field, const std::string& problem,
                                const std::string& hint) const;

  bool Has(const std::string& name) const { return object_.contains(name); }
  /// The field, or null when absent; it counts as read.
  const nlohmann::json& Field(const std::string& name) const;
  /// Null is as absent, here and below.
  int64_t Integer(const std::string& name, int64_t absent) const;
  int64_t RequiredInteger(const std::string& name) const;  ///< positive
  double Number(const std::string& name, double absent) const;
  double RequiredNumber(const std::string& name) const;
  bool Flag(const std::string& name, bool absent) const;
  /// Refuses the field unless it has the one value that is computed.
  void RequireFlag(const std::string& name, bool usual) const;
  /// A token id, the first one where transformers stores a list, or -1.
  int64_t Id(const std::string& name) const;
  /// The token ids of a list, or of one id; none that is negative.
  std::vector<int64_t> Ids(const std::string& name) const;

  /// Refuses a field that was not read, has a value (not null, false, zero or empty), and is not one of those
  /// that every config may have without changing what its model computes.
  void RefuseUnread() const;
  /// Refuses every field with a value that was not read.
  void RefuseUnreadWithoutExceptions() const;

 private:
  ConfigFields(const nlohmann::json& object, std::string path, std::string hint, std::string prefix)
      : object_(object), path_(std::move(path)), hint_(std::move(hint)), prefix_(std::move(prefix)) {}

  const nlohmann::json& object_;
  std::string path_, hint_, prefix_;
  mutable std::set<std::string> read_;
};

}  // namespace trainwright
