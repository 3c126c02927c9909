/// The cuts of pretokens.h where text is ASCII, 64 bytes at a time and without a branch for each byte.
///
/// Each function finds where pieces begin from runs of one kind of byte. `run & ~(run << 1)` are the first
/// bits of runs; `run + first` carries a bit from the beginning of a run to the byte after it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "lib/tok/ascii_block.h"
#include "lib/tok/pretokens.h"

namespace trainwright {
namespace ascii {

inline uint64_t RunBegins(uint64_t run) {
  return run & ~(run << 1);
}

/// How many bytes from the first on are ASCII.
inline int KnownSize(const AsciiBlock& block) {
  return std::countr_one(block.letters | block.digits | block.spaces | block.others);
}

/// The size of the contraction that begins at an apostrophe, with it; 0 when there is none.
inline size_t ContractionSize(const char* at, bool any_case) {
  const uint8_t fold = any_case ? 0x20 : 0;
  const auto first = static_cast<uint8_t>(at[1] | fold), second = static_cast<uint8_t>(at[2] | fold);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const bool two = ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
  return two ? 3 : 0;
}

/// Gives the contractions among pieces their own ends.
/// \param begins of pieces, as if there were none
template <bool any_case>
inline uint64_t WithContractions(uint64_t begins, uint64_t apostrophes, int known_size, const char* bytes) {
  for (uint64_t marks = apostrophes & begins; marks != 0; marks &= marks - 1) {
    const int at = std::countr_zero(marks);
    const uint64_t bit = uint64_t{1} << at;
    if (at + 3 >= known_size) return begins & (bit | (bit - 1));  // what follows is not known
    if (const size_t size = ContractionSize(bytes + at, any_case); size != 0) {
      begins = (begins & ~(bit << 1)) | bit << size;
    }
  }
  return begins;
}

inline uint64_t Gpt2PieceBegins(const AsciiBlock& block, int known_size, const char* bytes) {
  const uint64_t known = ~uint64_t{0} >> (64 - known_size);
  // A blank before a run is part of its piece. The last of several spaces is a piece of its own or begins the
  // next.
  const uint64_t words =
      (RunBegins(block.letters) | RunBegins(block.digits) | RunBegins(block.others)) & ~(block.blanks << 1);
  const uint64_t last_spaces = block.spaces & ~(block.spaces >> 1) & (known >> 1);
  const uint64_t begins = (words | RunBegins(block.spaces) | last_spaces | 1) & known;
  return WithContractions<false>(begins, block.apostrophes, known_size, bytes);
}

template <int longest_number>
inline uint64_t Llama3PieceBegins(const AsciiBlock& block, int known_size, const char* bytes) {
  uint64_t known = ~uint64_t{0} >> (64 - known_size);
  const auto [letters, digits, spaces, others, blanks, line_ends, apostrophes] = block;

  // Line ends right after a run of others are part of its piece; `free` are the other spaces.
  const uint64_t behind_others = line_ends & (others << 1);
  const uint64_t free = spaces & ~(line_ends & ~(line_ends + behind_others));
  // The last space before something else, when it is no line end, is a piece of its own or begins the next.
  const uint64_t last_spaces = free & ~line_ends & ~(spaces >> 1) & (known >> 1);
  uint64_t begins = RunBegins(free) | last_spaces;
  // Free spaces end in one piece with the last line end among them; what is after it is another piece.
  const uint64_t tails = free & ~line_ends;
  for (uint64_t marks = tails & ((free & line_ends) << 1); marks != 0; marks &= marks - 1) {
    const uint64_t bit = marks & -marks, behind = (tails + bit) & ~tails;
    if ((behind & known) == 0) {  // whether a line end follows is not known
      known &= bit - 1;
      break;
    }
    if ((behind & line_ends) == 0) begins |= bit;
  }

  const uint64_t first_others = RunBegins(others) & ~(blanks << 1);
  begins |= first_others;
  // One character that is no line end, letter or digit and has no piece yet belongs to the letters after it.
  begins |= RunBegins(letters) & ~((tails | first_others) << 1);

  uint64_t numbers = RunBegins(digits);
  if constexpr (longest_number == 1) {
    numbers = digits;
  } else {
    static_assert(longest_number == 3);
    const uint64_t fourth = digits & digits << 1 & digits << 2 & digits << 3;
    for (uint64_t last = numbers; last != 0;) numbers |= last = last << 3 & fourth;
  }
  begins = (begins | numbers | 1) & known;
  return WithContractions<true>(begins, apostrophes, known_size, bytes);
}

}  // namespace ascii

/// The ends of pieces within the 64 bytes of `block`, which begins with a piece: bit i says that one ends
/// before byte i. Ends that depend on what is not ASCII or not among these bytes are left out, and all after
/// them.
template <CutRule rule>
inline uint64_t AsciiPieceEnds(const AsciiBlock& block, const char* bytes) {
  const int known_size = ascii::KnownSize(block);
  // An AsciiBlock does not tell capitals from small letters, as o200k does.
  if (rule == CutRule::kNone || rule == CutRule::kO200k || known_size < 2) return 0;
  uint64_t begins = 0;
  if constexpr (rule == CutRule::kGpt2) {
    begins = ascii::Gpt2PieceBegins(block, known_size, bytes);
  } else {
    // The rules differ in white space at the end of a text only, and nothing is said of white space that may
    // be there.
    begins = ascii::Llama3PieceBegins < rule == CutRule::kQwen2 ? 1 : 3 > (block, known_size, bytes);
  }
  return begins & ~uint64_t{1};
}

}  // namespace trainwright
