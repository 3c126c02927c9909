#include "lib/documents/reference_check.h"

#include <algorithm>

namespace trainwright {

ReferenceCheck::ReferenceCheck(const Tokenizer& tokenizer, uint64_t every)
    : reference_(tokenizer.MakeReference()), every_(every) {
  TRAINWRIGHT_CHECK(every >= 1);
  if (reference_ == nullptr) {
    throw Error(ErrorCode::kUsage, "--verify",
                "there is nothing to compare the tokenizer " + tokenizer.identity().kind + " with");
  }
}

ReferenceCheck::Comparison ReferenceCheck::Compare(std::span<const uint32_t> ids,
                                                   std::span<const uint32_t> reference_ids,
                                                   const std::string& source,
                                                   const std::string& place) const {
  const auto [ours, theirs] =
      std::mismatch(ids.begin(), ids.end(), reference_ids.begin(), reference_ids.end());
  if (ours == ids.end() && theirs == reference_ids.end()) return {};
  const auto shown = [](auto at, auto end) { return at == end ? "the end" : "id " + std::to_string(*at); };
  if (reference_->IsTie(ids, reference_ids)) return {.tied = true};
  return {.difference = Error(ErrorCode::kNo, source,
                              "token " + std::to_string(ours - ids.begin()) + " of a document is " +
                                  shown(ours, ids.end()) + ", and " + reference_->method() + " has " +
                                  shown(theirs, reference_ids.end()),
                              place, "please report this document; no output was kept")};
}

}  // namespace trainwright
