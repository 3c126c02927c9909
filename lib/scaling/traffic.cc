#include "lib/scaling/traffic.h"

#include "lib/base/error.h"

namespace trainwright {

Traffic RingHalf(int64_t bytes, int64_t ranks) {
  TRAINWRIGHT_CHECK(bytes >= 0 && ranks >= 1);
  const int64_t part = bytes / ranks + (bytes % ranks != 0 ? 1 : 0);
  return {.sent_bytes = (ranks - 1) * part, .messages = ranks - 1};
}

Traffic RingSum(int64_t bytes, int64_t ranks) {
  Traffic sum = RingHalf(bytes, ranks);
  sum += RingHalf(bytes, ranks);
  return sum;
}

}  // namespace trainwright
