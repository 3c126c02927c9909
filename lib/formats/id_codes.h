/// Codes of one to three bytes for token ids, shorter for more frequent ids: how `pack --remap` stores them.
///
/// The ids of a vocabulary are ranked by falling frequency. The first byte of a code gives its length: below
/// `one_byte` it is the rank itself; the last `three_byte` values begin a code of three bytes, the rest one
/// of two. So each rank has one code, and zstd finds repeated phrases in fewer bytes than in fixed-width ids.
/// Layout: man/trainwright-shard.5, CODES.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/bytes.h"

namespace trainwright {

/// Immutable, so thread-safe. Memory: 4 bytes an id and 4 bytes a code; codes of three bytes come 65,536 at a
/// time.
class IdCodes {
 public:
  static constexpr uint32_t kMaxVocabulary = 1u << 22;

  /// The codes that spend the fewest bytes where id i occurs counts[i] times; ids of equal count keep their
  /// order.
  /// \param counts of the whole vocabulary, 1..kMaxVocabulary ids
  static IdCodes ForCounts(std::span<const uint64_t> counts);

  /// Reads what EncodeTable wrote.
  /// \throws Error{kBadInput} with `offset` in `object`
  static IdCodes DecodeTable(ByteSpan table, uint32_t vocab_size, const std::string& object, uint64_t offset);
  const std::vector<uint8_t>& EncodeTable() const { return table_; }

  uint32_t vocab_size() const { return static_cast<uint32_t>(rank_of_id_.size()); }

  /// Appends the codes of `ids`, which are below vocab_size().
  void AppendCodes(std::span<const uint32_t> ids, std::vector<uint8_t>* out) const;
  /// \returns false unless `codes` are those of exactly ids.size() ids
  [[nodiscard]] bool DecodeInto(ByteSpan codes, std::span<uint32_t> ids) const;

  /// Whether both give the same codes.
  bool operator==(const IdCodes& other) const { return table_ == other.table_; }

 private:
  IdCodes(uint32_t vocab_size, const std::vector<uint32_t>& most_frequent, uint32_t one_byte,
          uint32_t three_byte);

  uint32_t two_byte_begin_, three_byte_begin_;  // first bytes
  uint32_t two_byte_rank_, three_byte_rank_;    // the smallest ranks of such codes
  std::vector<uint32_t> rank_of_id_;
  std::vector<uint32_t> id_of_rank_;  // of every code there is; those beyond the vocabulary have no id
  std::vector<uint8_t> table_;
};

}  // namespace trainwright
