#include "lib/loading/token_run.h"

namespace trainwright {

void TokenRun::AppendNarrowed(std::span<const uint32_t> ids) {
  const size_t begin = ids_16_.size();
  ids_16_.resize(begin + ids.size());
  uint16_t* out = ids_16_.data() + begin;
  for (size_t i = 0; i < ids.size(); ++i) out[i] = static_cast<uint16_t>(ids[i]);
}

std::vector<uint32_t> TokenRun::Widened(size_t begin, size_t count) const {
  if (narrow_)
    return {ids_16_.begin() + static_cast<ptrdiff_t>(begin),
            ids_16_.begin() + static_cast<ptrdiff_t>(begin + count)};
  return {ids_32_.begin() + static_cast<ptrdiff_t>(begin),
          ids_32_.begin() + static_cast<ptrdiff_t>(begin + count)};
}

}  // namespace trainwright
