#include "lib/scaling/traffic.h"

#include "lib/base/error.h"

namespace trainwright {

Traffic EqualParts(int64_t part_bytes, int64_t ranks) {
  TRAINWRIGHT_CHECK(part_bytes >= 0 && ranks >= 1);
  return {.sent_bytes = (ranks - 1) * part_bytes, .messages = ranks - 1};
}

Traffic RingHalf(int64_t bytes, int64_t ranks) {
  TRAINWRIGHT_CHECK(ranks >= 1);
  return EqualParts(bytes / ranks + (bytes % ranks != 0 ? 1 : 0), ranks);
}

Traffic RingSum(int64_t bytes, int64_t ranks) {
  Traffic sum = RingHalf(bytes, ranks);
  sum += RingHalf(bytes, ranks);
  return sum;
}

}  // namespace trainwright
