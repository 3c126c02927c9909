#include "lib/eval/repetition.h"

#include <vector>

#include "lib/base/error.h"

namespace trainwright {

void PenalizeRepetition(std::span<const uint32_t> seen, double penalty, std::span<float> logits) {
  const auto factor = static_cast<float>(penalty);
  std::vector<bool> penalized(logits.size());
  for (const uint32_t id : seen) {
    TRAINWRIGHT_CHECK(id < logits.size());
    if (penalized[id]) continue;
    penalized[id] = true;
    logits[id] = logits[id] < 0 ? logits[id] * factor : logits[id] / factor;
  }
}

}  // namespace trainwright
