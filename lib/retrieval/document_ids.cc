#include "lib/retrieval/document_ids.h"

#include <algorithm>
#include <numeric>

#include "lib/base/error.h"
#include "lib/tok/utf8.h"

namespace trainwright {

void DocumentIds::Index(const std::string& object) {
  by_name_.resize(ids_.size());
  std::iota(by_name_.begin(), by_name_.end(), uint64_t{0});
  std::sort(by_name_.begin(), by_name_.end(), [&](uint64_t a, uint64_t b) { return ids_[a] < ids_[b]; });
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(),
                                        [&](uint64_t a, uint64_t b) { return ids_[a] == ids_[b]; });
  if (twice == by_name_.end()) return;
  throw Error(ErrorCode::kBadInput, object, "has the id " + Quoted(ids_[*twice]) + " twice", "",
              "give every text an id of its own");
}

std::optional<uint64_t> DocumentIds::Find(std::string_view id) const {
  TRAINWRIGHT_CHECK(by_name_.size() == ids_.size());
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), id,
                                      [&](uint64_t row, std::string_view name) { return ids_[row] < name; });
  if (found == by_name_.end() || ids_[*found] != id) return std::nullopt;
  return *found;
}

TieOrder DocumentIds::LaterNameFirst() const {
  return [this](uint64_t a, uint64_t b) { return ids_[a] > ids_[b]; };
}

}  // namespace trainwright
