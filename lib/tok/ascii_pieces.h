/// The cuts of pretokens.h where text is ASCII, sixteen bytes at a time.
///
/// Most pieces of most texts are short and ASCII. These functions find the end of such a piece without a
/// branch for each byte, and leave every other piece to PieceEnd.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "lib/tok/pretokens.h"

namespace trainwright {

/// How far AsciiPieceSize may read behind the first byte.
inline constexpr size_t kAsciiReach = 40;

namespace ascii {

enum Kind : uint8_t { kOther, kLetterKind, kDigitKind, kSpaceKind, kNotAscii };

constexpr Kind KindOf(uint8_t byte) {
  if (byte >= 0x80) return kNotAscii;
  if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') return kLetterKind;
  if (byte >= '0' && byte <= '9') return kDigitKind;
  if (byte == ' ' || (byte >= '\t' && byte <= '\r')) return kSpaceKind;
  return kOther;
}
inline constexpr std::array<Kind, 256> kKinds = [] {
  std::array<Kind, 256> kinds{};
  for (int byte = 0; byte < 256; ++byte)
    kinds[static_cast<size_t>(byte)] = KindOf(static_cast<uint8_t>(byte));
  return kinds;
}();
inline Kind KindAt(const char* at) {
  return kKinds[static_cast<uint8_t>(*at)];
}

/// Bit i tells of byte i of sixteen.
struct Masks {
#ifdef __SSE2__
  explicit Masks(const char* at) : bytes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))) {}
  /// Bytes from `first` on, `count` of them.
  static __m128i InRange(__m128i bytes, uint8_t first, uint8_t count) {
    const __m128i shifted = _mm_add_epi8(bytes, _mm_set1_epi8(static_cast<char>(0x80 - first)));
    return _mm_cmplt_epi8(shifted, _mm_set1_epi8(static_cast<char>(0x80 + count)));
  }
  static uint32_t Bits(__m128i mask) { return static_cast<uint32_t>(_mm_movemask_epi8(mask)); }
  __m128i LetterBytes() const { return InRange(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 26); }
  __m128i DigitBytes() const { return InRange(bytes, '0', 10); }
  __m128i SpaceBytes() const {
    return _mm_or_si128(InRange(bytes, '\t', 5), _mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')));
  }
  uint32_t Letters() const { return Bits(LetterBytes()); }
  uint32_t Digits() const { return Bits(DigitBytes()); }
  uint32_t Spaces() const { return Bits(SpaceBytes()); }
  uint32_t Others() const {
    const __m128i known = _mm_or_si128(_mm_or_si128(LetterBytes(), DigitBytes()), SpaceBytes());
    return ~Bits(_mm_or_si128(known, bytes)) & 0xFFFF;  // the top bit of a byte marks what is not ASCII
  }
  uint32_t Equal(char byte) const { return Bits(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte))); }
  __m128i bytes;
#else
  explicit Masks(const char* at) : bytes(at) {}
  uint32_t Of(Kind kind) const {
    uint32_t bits = 0;
    for (int i = 0; i < 16; ++i) bits |= uint32_t{KindAt(bytes + i) == kind} << i;
    return bits;
  }
  uint32_t Letters() const { return Of(kLetterKind); }
  uint32_t Digits() const { return Of(kDigitKind); }
  uint32_t Spaces() const { return Of(kSpaceKind); }
  uint32_t Others() const { return Of(kOther); }
  uint32_t Equal(char byte) const {
    uint32_t bits = 0;
    for (int i = 0; i < 16; ++i) bits |= uint32_t{bytes[i] == byte} << i;
    return bits;
  }
  const char* bytes;
#endif
  uint32_t LineEnds() const { return Equal('\n') | Equal('\r'); }
};

/// How many of sixteen bytes from the first on are in the mask.
inline size_t RunOf(uint32_t mask) {
  return static_cast<size_t>(std::countr_one(mask));
}

/// The end of a run that began at `at`: 0 when it may go on beyond what was looked at.
inline const char* RunEnd(const char* at, uint32_t mask) {
  const size_t run = RunOf(mask);
  return run == 16 || KindAt(at + run) == kNotAscii ? nullptr : at + run;
}

inline size_t ContractionSize(const char* at, bool any_case) {
  const uint8_t fold = any_case ? 0x20 : 0;
  const auto first = static_cast<uint8_t>(at[1] | fold), second = static_cast<uint8_t>(at[2] | fold);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const bool two = ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
  return two ? 3 : 0;
}

}  // namespace ascii

/// How many bytes AsciiPieceEnds looks at.
inline constexpr size_t kAsciiBlock = 64;

/// The ends of pieces within the 64 bytes from `begin`, where a piece begins: bit i tells that one ends
/// before byte i. Ends that depend on what is not ASCII or not among these bytes are left out, and all behind
/// them. Always 0 for rules that have no such function.
template <CutRule rule>
inline uint64_t AsciiPieceEnds(const char* /*begin*/) {
  return 0;
}

template <>
inline uint64_t AsciiPieceEnds<CutRule::kGpt2>(const char* begin) {
  using namespace ascii;
  uint64_t letters = 0, digits = 0, spaces = 0, others = 0, blanks = 0, apostrophes = 0;
  for (size_t at = 0; at < kAsciiBlock; at += 16) {
    const Masks masks(begin + at);
    letters |= uint64_t{masks.Letters()} << at;
    digits |= uint64_t{masks.Digits()} << at;
    spaces |= uint64_t{masks.Spaces()} << at;
    others |= uint64_t{masks.Others()} << at;
    blanks |= uint64_t{masks.Equal(' ')} << at;
    apostrophes |= uint64_t{masks.Equal('\'')} << at;
  }
  // Bytes before the first that is not ASCII.
  const int known_size = std::countr_one(letters | digits | spaces | others);
  if (known_size < 2) return 0;
  const uint64_t known = ~uint64_t{0} >> (64 - known_size);
  const auto run_begins = [](uint64_t run) { return run & ~(run << 1); };
  // A blank before a run is part of its piece. The last of several spaces is a piece of its own or begins the
  // next.
  const uint64_t words = (run_begins(letters) | run_begins(digits) | run_begins(others)) & ~(blanks << 1);
  const uint64_t last_spaces = spaces & ~(spaces >> 1) & (known >> 1);
  uint64_t ends = (words | run_begins(spaces) | last_spaces) & known;
  for (uint64_t marks = apostrophes & (ends | 1); marks != 0; marks &= marks - 1) {
    const int at = std::countr_zero(marks);
    const uint64_t bit = uint64_t{1} << at;
    if (at + 3 >= known_size) {  // what follows is not known
      ends &= bit | (bit - 1);
      break;
    }
    if (const size_t size = ContractionSize(begin + at, false); size != 0) {
      ends = (ends & ~(bit << 1)) | bit << size;
    }
  }
  return ends & ~uint64_t{1};
}

/// The size of the piece that begins at `begin`, of which kAsciiReach bytes can be read; 0 when PieceEnd must
/// say.
template <CutRule rule>
inline size_t AsciiPieceSize(const char* begin);

template <>
inline size_t AsciiPieceSize<CutRule::kNone>(const char* /*begin*/) {
  return 0;
}

template <>
inline size_t AsciiPieceSize<CutRule::kGpt2>(const char* begin) {
  using namespace ascii;
  const char* at = begin + (*begin == ' ' ? 1 : 0);
  const char* end = nullptr;
  switch (KindAt(at)) {
    case kLetterKind:
      end = RunEnd(at, Masks(at).Letters());
      break;
    case kDigitKind:
      end = RunEnd(at, Masks(at).Digits());
      break;
    case kOther:
      if (*begin == '\'') {
        if (const size_t size = ContractionSize(begin, false); size != 0) return size;
      }
      end = RunEnd(at, Masks(at).Others());
      break;
    case kSpaceKind:
      end = RunEnd(begin, Masks(begin).Spaces());
      // The last space of several belongs to what follows.
      if (end != nullptr && end - begin > 1) --end;
      break;
    case kNotAscii:
      return 0;
  }
  return end == nullptr ? 0 : static_cast<size_t>(end - begin);
}

namespace ascii {

template <size_t longest_number>
inline size_t Llama3PieceSize(const char* begin) {
  const Kind kind = KindAt(begin);
  const char* end = nullptr;
  if (kind == kNotAscii) return 0;
  if (kind == kLetterKind) {
    end = RunEnd(begin, Masks(begin).Letters());
    return end == nullptr ? 0 : static_cast<size_t>(end - begin);
  }
  if (kind == kDigitKind) {
    const size_t run = RunOf(Masks(begin).Digits());
    if (run >= longest_number) return longest_number;
    return KindAt(begin + run) == kNotAscii ? 0 : run;
  }
  const bool line_end = *begin == '\n' || *begin == '\r';
  // A contraction with U+017F, the long s, is not ASCII.
  if (KindAt(begin + 1) == kNotAscii) return 0;
  if (*begin == '\'') {
    if (const size_t size = ContractionSize(begin, true); size != 0) return size;
  }
  if (!line_end && KindAt(begin + 1) == kLetterKind) {
    end = RunEnd(begin + 1, Masks(begin + 1).Letters());
    return end == nullptr ? 0 : static_cast<size_t>(end - begin);
  }
  const char* at = begin + (*begin == ' ' ? 1 : 0);
  if (KindAt(at) == kOther) {
    end = RunEnd(at, Masks(at).Others());
    if (end == nullptr) return 0;
    const size_t line_ends = RunOf(Masks(end).LineEnds());
    return line_ends == 16 ? 0 : static_cast<size_t>(end - begin) + line_ends;
  }
  const Masks masks(begin);
  end = RunEnd(begin, masks.Spaces());
  if (end == nullptr) return 0;
  const auto run = static_cast<size_t>(end - begin);
  const uint32_t line_ends = masks.LineEnds() & ((1u << run) - 1);
  if (line_ends != 0) return static_cast<size_t>(std::bit_width(line_ends));
  return run > 1 ? run - 1 : 1;
}

}  // namespace ascii

template <>
inline size_t AsciiPieceSize<CutRule::kLlama3>(const char* begin) {
  return ascii::Llama3PieceSize<3>(begin);
}

/// Of white space it knows only what ends before the text does.
template <>
inline size_t AsciiPieceSize<CutRule::kCl100k>(const char* begin) {
  return ascii::Llama3PieceSize<3>(begin);
}

template <>
inline size_t AsciiPieceSize<CutRule::kQwen2>(const char* begin) {
  return ascii::Llama3PieceSize<1>(begin);
}

}  // namespace trainwright
