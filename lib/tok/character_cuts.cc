#include "lib/tok/character_cuts.h"

#include <bit>
#include <cstring>
#include <utility>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

constexpr uint32_t kSpaceMark = 0x2581;
constexpr size_t kCodePoints = 0x110000;

size_t PlaceOf(uint64_t bigram, size_t slots) {
  return (bigram ^ bigram >> 25) * 0x9E3779B97F4A7C15u >> (64 - std::countr_zero(slots));
}

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
      kinds_(kCodePoints),
      bigrams_(1 << 10) {
  std::vector<std::string_view> pieces;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    if (piece.matches_text()) pieces.push_back(piece.text);
  }
  Read(pieces, /*cuts_before_spaces=*/false);
}

CharacterCuts::CharacterCuts(const Settings& settings, const std::vector<std::string_view>& pieces)
    : space_(settings.folds_spaces ? kSpaceMark : ' '),
      unknown_characters_join_(settings.keeps_unknown_together),
      kinds_(kCodePoints),
      bigrams_(1 << 10) {
  Read(pieces, settings.cuts_before_spaces);
}

void CharacterCuts::Read(const std::vector<std::string_view>& pieces, bool cuts_before_spaces) {
  for (const std::string_view text : pieces) {
    Utf8Character previous = DecodeUtf8(text);
    if (previous.size_bytes == text.size()) kinds_[previous.code_point] |= kKnown;
    for (size_t at = previous.size_bytes; at < text.size();) {
      const Utf8Character next = DecodeUtf8(text.substr(at));
      if (!cuts_before_spaces || next.code_point != space_) AddBigram(previous.code_point, next.code_point);
      previous = next;
      at += next.size_bytes;
    }
  }
  ascii_.assign(1 << 16, 0);
  for (uint32_t left = 0; left < 0x80; ++left) {
    for (uint32_t right = 0; right < 0x80; ++right) {
      ascii_[right << 8 | left] = MayCutFolded(Fold(left), Fold(right)) ? 1 : 0;
    }
  }
}

void CharacterCuts::AddBigram(uint32_t left, uint32_t right) {
  kinds_[left] |= kHasRight;
  kinds_[right] |= kHasLeft;
  const auto insert = [this](uint64_t bigram) {
    const size_t mask = bigrams_.size() - 1;
    size_t at = PlaceOf(bigram, bigrams_.size());
    while (bigrams_[at] != 0 && bigrams_[at] != bigram) at = (at + 1) & mask;
    const bool added = bigrams_[at] == 0;
    bigrams_[at] = bigram;
    return added;
  };
  // Two NULs would read as an empty place: models with NUL in a piece have no cuts.
  if (insert(uint64_t{left} << 32 | right) && ++bigram_count_ * 4 > bigrams_.size()) {
    const std::vector<uint64_t> old = std::exchange(bigrams_, std::vector<uint64_t>(bigrams_.size() * 2));
    for (const uint64_t bigram : old) {
      if (bigram != 0) insert(bigram);
    }
  }
}

bool CharacterCuts::IsBigram(uint32_t left, uint32_t right) const {
  const uint64_t bigram = uint64_t{left} << 32 | right;
  const size_t mask = bigrams_.size() - 1;
  for (size_t at = PlaceOf(bigram, bigrams_.size());; at = (at + 1) & mask) {
    if (bigrams_[at] == bigram) return true;
    if (bigrams_[at] == 0) return false;
  }
}

bool CharacterCuts::MayCutFolded(uint32_t left, uint32_t right) const {
  const uint8_t left_kind = kinds_[left], right_kind = kinds_[right];
  if (unknown_characters_join_ && ((left_kind | right_kind) & kKnown) == 0) return false;
  return (left_kind & kHasRight) == 0 || (right_kind & kHasLeft) == 0 || !IsBigram(left, right);
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
