#include "lib/formats/contrastive_order.h"

namespace trainwright {

const char* ContrastiveOrder::Add(bool begins_text, TextRole role, bool pooled, uint64_t tokens) {
  if (tokens == 0) return "a run of a contrastive record has no tokens";
  if (!begins_text) {
    if (texts_ == 0) return "a text goes on that never began";
    if (role != role_) return "a text changes its role";
    if (pooled_ && !pooled) return "an instruction comes after the text that it belongs to";
    pooled_ = pooled;
    return nullptr;
  }
  if (texts_ == 0) {
    if (role != TextRole::kQuery) return "a record does not begin with its query";
  } else {
    if (const char* fault = FaultOfTextEnd()) return fault;
    if (role == TextRole::kQuery) return "a record has a second query";
    if (role < role_) return "a positive comes after the negatives";
    if (role == TextRole::kNegative && role_ == TextRole::kQuery) return "a record has no positive";
  }
  ++texts_;
  role_ = role;
  pooled_ = pooled;
  return nullptr;
}

const char* ContrastiveOrder::EndRecord() {
  if (const char* fault = FaultOfTextEnd()) return fault;
  if (texts_ < 2) return "a record has no positive";
  texts_ = 0;
  return nullptr;
}

}  // namespace trainwright
