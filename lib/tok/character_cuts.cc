#include "lib/tok/character_cuts.h"

#include <algorithm>
#include <bit>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr uint32_t kSpaceMark = 0x2581;
constexpr size_t kCodePoints = 0x110000;
/// One pair in 32 or fewer has the place of another, as long as the bits fit a processor's cache.
constexpr size_t kBitsAPair = 32, kMinBits = 1 << 12, kMaxBits = 1 << 22;

/// How many of 64 bytes from the first on are ASCII.
int AsciiSize(const char* begin) {
  uint64_t others = 0;
#ifdef __SSE2__
  for (size_t at = 0; at < CharacterCuts::kBlock; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(begin + at));
    others |= uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(bytes))} << at;
  }
#else
  for (size_t at = 0; at < CharacterCuts::kBlock; ++at) {
    others |= uint64_t{static_cast<uint8_t>(begin[at]) >= 0x80} << at;
  }
#endif
  return std::countr_zero(others);
}

}  // namespace

CharacterCuts::CharacterCuts(const SentencePieceModel& model, bool keeps_unknown_together)
    : space_(model.escape_whitespaces ? kSpaceMark : ' '),
      unknown_characters_join_(keeps_unknown_together && !model.byte_fallback),
      known_(unknown_characters_join_ ? kCodePoints : 0) {
  std::vector<std::string_view> pieces;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    if (piece.matches_text()) pieces.push_back(piece.text);
  }
  Read(pieces, /*cuts_before_spaces=*/false);
}

CharacterCuts::CharacterCuts(const Settings& settings, const std::vector<std::string_view>& pieces)
    : space_(settings.folds_spaces ? kSpaceMark : ' '),
      unknown_characters_join_(settings.keeps_unknown_together),
      known_(unknown_characters_join_ ? kCodePoints : 0) {
  Read(pieces, settings.cuts_before_spaces);
}

void CharacterCuts::Read(const std::vector<std::string_view>& pieces, bool cuts_before_spaces) {
  std::vector<uint64_t> pairs;
  for (const std::string_view text : pieces) {
    Utf8Character previous = DecodeUtf8(text);
    if (unknown_characters_join_ && previous.size_bytes == text.size()) known_[previous.code_point] = 1;
    for (size_t at = previous.size_bytes; at < text.size();) {
      const Utf8Character next = DecodeUtf8(text.substr(at));
      if (!cuts_before_spaces || next.code_point != space_) {
        pairs.push_back(PairOf(previous.code_point, next.code_point));
      }
      previous = next;
      at += next.size_bytes;
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  FillPairs(pairs);
  ascii_.assign(1 << 16, 0);
  for (uint32_t left = 0; left < 0x80; ++left) {
    for (uint32_t right = 0; right < 0x80; ++right) {
      const uint64_t pair = PairOf(Fold(left), Fold(right));
      const bool is_pair = std::binary_search(pairs.begin(), pairs.end(), pair);
      ascii_[right << 8 | left] = is_pair || AreUnknown(Fold(left), Fold(right)) ? 0 : 1;
    }
  }
}

void CharacterCuts::FillPairs(const std::vector<uint64_t>& pairs) {
  const size_t bits = std::clamp(std::bit_ceil(pairs.size() * kBitsAPair), kMinBits, kMaxBits);
  shift_ = 64 - std::countr_zero(bits);
  pairs_.assign(bits / 64, 0);
  for (const uint64_t pair : pairs) pairs_[PlaceOf(pair) / 64] |= uint64_t{1} << (PlaceOf(pair) % 64);
}

uint64_t CharacterCuts::AsciiCuts(const char* begin) const {
  const int known_size = AsciiSize(begin);
  if (known_size < 2) return 0;
  const uint8_t* const cuts = ascii_.data();
  uint64_t ends = 0;
#pragma GCC unroll 63
  for (size_t i = 1; i < kBlock; ++i) {
    uint16_t pair;
    std::memcpy(&pair, begin + i - 1, sizeof(pair));
    ends |= uint64_t{cuts[pair]} << i;
  }
  return ends & ~uint64_t{0} >> (64 - known_size);
}

}  // namespace trainwright
