#include "lib/checkpoint/async_save.h"

#include "lib/base/units.h"

namespace trainwright {

AsyncSaveChoice ChooseAsyncSave(int64_t snapshot_bytes, int64_t available_bytes) {
  const auto bytes = [](int64_t size) { return FormatBytes(static_cast<uint64_t>(size)); };
  AsyncSaveChoice choice;
  choice.background = available_bytes <= 0 || snapshot_bytes <= available_bytes / 4 * 3;
  choice.reason =
      "a copy of weights and moments, " + bytes(snapshot_bytes) + ", " +
      (available_bytes <= 0 ? "is assumed to fit: what memory is available is not known"
       : choice.background  ? "fits into the " + bytes(available_bytes) + " of memory available"
                            : "is too much for the " + bytes(available_bytes) + " of memory available");
  return choice;
}

}  // namespace trainwright
