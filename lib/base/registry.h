/// The things of one kind that a program knows, by name: a value that main fills and passes on. What is added
/// to it needs no edit anywhere else. Torch-free; safe to read from several threads.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {

/// \tparam Entry has a `const std::string& name() const`
template <typename Entry>
class Registry {
 public:
  /// \param kind what an entry is, for messages: "optimizer"
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// \param entry of a name that the registry does not hold yet
  void Add(Entry entry) {
    TRAINWRIGHT_CHECK(FindOrNull(entry.name()) == nullptr);
    entries_.push_back(std::move(entry));
  }
  const Entry* FindOrNull(const std::string& name) const {
    for (const Entry& entry : entries_) {
      if (entry.name() == name) return &entry;
    }
    return nullptr;
  }
  /// \throws Error{kUsage} naming those that there are
  const Entry& Find(const std::string& name) const {
    if (const Entry* entry = FindOrNull(name)) return *entry;
    std::string names;
    for (const Entry& entry : entries_) names += (names.empty() ? "" : ", ") + entry.name();
    throw Error(ErrorCode::kUsage, kind_, "unknown name '" + name + "'", "",
                names.empty() ? "" : "this program knows " + names);
  }
  const std::vector<Entry>& all() const { return entries_; }

 private:
  std::string kind_;
  std::vector<Entry> entries_;
};

}  // namespace trainwright
