/// The chunks that could not be read and that others took the places of.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace trainwright {

/// A chunk that could not be read, and why.
struct BadChunk {
  uint64_t chunk = 0;
  Error error;
};

/// Not thread-safe.
class SkippedChunks {
 public:
  /// \param most that may be left out
  explicit SkippedChunks(uint64_t most) : most_(most) {}
  /// Takes over what a window that is now in use left out, each chunk with a warning.
  /// \throws Error{kBadInput} naming the chunk that is one too many
  void TakeOver(const std::vector<BadChunk>& found);
  /// Those of a run that is resumed.
  /// \throws Error{kUsage} when there are more than may be
  void Restore(const std::vector<uint64_t>& chunks);
  /// Whether it holds one of these.
  bool HoldsAny(const std::vector<uint64_t>& chunks) const;
  const std::set<uint64_t>& chunks() const { return chunks_; }
  /// The warnings since this was called last.
  std::vector<std::string> TakeWarnings() { return std::exchange(warnings_, {}); }

 private:
  uint64_t most_;
  std::set<uint64_t> chunks_;
  std::vector<std::string> warnings_;  // that TakeWarnings() did not return yet
};

}  // namespace trainwright
