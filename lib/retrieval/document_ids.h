/// The names of a corpus' rows or of queries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/retrieval/scored_row.h"

namespace trainwright {

/// Names by row, and rows by name. Memory: the names and 8 bytes each. Not thread-safe while it is filled.
class DocumentIds {
 public:
  void Add(std::string id) { ids_.push_back(std::move(id)); }
  uint64_t size() const { return ids_.size(); }
  const std::string& operator[](uint64_t row) const { return ids_[row]; }

  /// To be called once, after the last Add and before Find.
  /// \param object what they are the names of, for messages
  /// \throws Error{kBadInput} where two rows have the same name
  void Index(const std::string& object);
  std::optional<uint64_t> Find(std::string_view id) const;

  /// Equal scores as trec_eval breaks them: the name that is the later one by its bytes goes first.
  /// \returns an order that is valid while this lives in its place; rows may still be added
  TieOrder LaterNameFirst() const;

 private:
  std::vector<std::string> ids_;
  std::vector<uint64_t> by_name_;  // rows by rising names
};

}  // namespace trainwright
