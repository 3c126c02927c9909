#include "lib/device/memory_cap.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "lib/base/error.h"
#include "lib/device/process_memory.h"

namespace trainwright {

int64_t CapHostMemory(double fraction) {
  if (!(fraction > 0 && fraction <= 1)) {
    throw Error(ErrorCode::kUsage, "--mem-fraction", "must be above 0 and at most 1");
  }
  const int64_t available = AvailableMemoryBytes(), taken = PrivateWritableBytes();
  if (available == 0 || taken == 0) {
    throw Error(ErrorCode::kIo, "--mem-fraction", "the system does not tell how much memory there is");
  }
  const auto cap = static_cast<int64_t>(fraction * static_cast<double>(available));
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) throw SystemError("--mem-fraction", "getrlimit", errno);
  limit.rlim_cur = std::min(limit.rlim_cur, static_cast<rlim_t>(taken + cap));
  if (setrlimit(RLIMIT_DATA, &limit) != 0) throw SystemError("--mem-fraction", "setrlimit", errno);
  return cap;
}

}  // namespace trainwright
