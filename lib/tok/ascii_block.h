/// Which of 64 bytes of text are of which kind, as bits: the first look of the fast ways to cut a text.
///
/// Read by whole vectors where the processor has them; every version gives the same bits. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trainwright {

/// Bit i describes byte i. No bit of a byte from 0x80 on is set.
struct AsciiBlock {
  static constexpr size_t kBytes = 64;
  uint64_t letters, digits, spaces;  ///< spaces: U+0009 to U+000D and U+0020
  uint64_t others;                   ///< ASCII that is not one of those
  uint64_t blanks;                   ///< U+0020
  uint64_t line_ends;                ///< U+000A and U+000D
  uint64_t apostrophes;
  bool operator==(const AsciiBlock&) const = default;
};

/// Reads AsciiBlock::kBytes bytes.
using ReadAsciiBlockFunction = AsciiBlock (*)(const char* bytes);

/// The version that looks at byte after byte, then those for vectors that this processor supports, the
/// fastest last.
std::span<const ReadAsciiBlockFunction> SupportedReadAsciiBlocks();

}  // namespace trainwright
