#include "lib/base/utc_time.h"

#include <ctime>

namespace trainwright {

std::string Rfc3339Now() {
  const time_t now = time(nullptr);
  struct tm fields;
  gmtime_r(&now, &fields);
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &fields);
  return text;
}

}  // namespace trainwright
