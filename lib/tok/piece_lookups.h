/// Looks up the pieces of a text in a memo, in groups: while one asks for memory, the others' is on its way.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/tok/piece_memo.h"

namespace trainwright {

/// Pieces are added in the order of the text, each where the one before ended; they are bytes that outlive
/// the next Flush.
class PieceLookups {
 public:
  static constexpr size_t kGroup = 192;

  /// How many pieces can be added before Flush.
  size_t room() const { return kGroup - count_; }

  /// \param readable whether PieceMemo::kReach bytes can be read from the piece's beginning on
  void Add(const PieceMemo& memo, const char* piece, size_t size_bytes, bool readable) {
    const std::string_view text(piece, size_bytes);
    keys_[count_] = readable ? PieceMemo::KeyOfReadable(text) : PieceMemo::KeyOf(text);
    memo.Prefetch(keys_[count_]);
    begins_[count_++] = piece;
    begins_[count_] = piece + size_bytes;
  }

  /// Appends the ids of all pieces that were added; `encode(key, piece)` does for those that FindShort does
  /// not know.
  template <typename Encode>
  void Flush(const PieceMemo& memo, std::vector<uint32_t>* ids, Encode&& encode) {
    uint32_t found[kGroup * PieceMemo::kInline + PieceMemo::kWritten];
    size_t found_count = 0;
    const auto emit = [&] { ids->insert(ids->end(), found, found + found_count); };
    for (size_t i = 0; i < count_; ++i) {
      const size_t short_ids = memo.FindShort(keys_[i], found + found_count);
      found_count += short_ids;
      if (short_ids != 0) continue;
      emit();
      found_count = 0;
      encode(keys_[i], std::string_view(begins_[i], static_cast<size_t>(begins_[i + 1] - begins_[i])));
    }
    emit();
    count_ = 0;
  }

  /// Likewise, one by one: `take(ids, count)` with those that FindShort knows, whose array may be written to;
  /// and `encode(key, piece)` for the others, and where `take` returns false.
  template <typename Take, typename Encode>
  void FlushEach(const PieceMemo& memo, Take&& take, Encode&& encode) {
    for (size_t i = 0; i < count_; ++i) {
      uint32_t found[PieceMemo::kWritten];
      const size_t short_ids = memo.FindShort(keys_[i], found);
      if (short_ids != 0 && take(found, short_ids)) continue;
      encode(keys_[i], std::string_view(begins_[i], static_cast<size_t>(begins_[i + 1] - begins_[i])));
    }
    count_ = 0;
  }

 private:
  size_t count_ = 0;
  const char* begins_[kGroup + 1];
  PieceMemo::Key keys_[kGroup];
};

}  // namespace trainwright
