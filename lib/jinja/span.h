/// A place in a text.
#pragma once

#include <cstdint>

namespace trainwright::jinja {

/// Bytes [begin, end) of a text.
struct Span {
  uint64_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

}  // namespace trainwright::jinja
