#include "lib/tok/ascii_block.h"

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trainwright {
namespace {

AsciiBlock ReadByByte(const char* bytes) {
  AsciiBlock block{};
  for (size_t i = 0; i < AsciiBlock::kBytes; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const uint64_t bit = uint64_t{1} << i;
    if (byte >= 0x80) continue;
    if (byte == ' ') block.blanks |= bit;
    if (byte == '\n' || byte == '\r') block.line_ends |= bit;
    if (byte == '\'') block.apostrophes |= bit;
    if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') {
      block.letters |= bit;
    } else if (byte >= '0' && byte <= '9') {
      block.digits |= bit;
    } else if (byte == ' ' || (byte >= '\t' && byte <= '\r')) {
      block.spaces |= bit;
    } else {
      block.others |= bit;
    }
  }
  return block;
}

#if defined(__x86_64__)

constexpr char kFold = 0x20;  // an ASCII letter with this bit is lower case

// Signed comparisons find bytes of a range moved to the bottom of what a signed byte holds.
__attribute__((target("avx2"))) inline uint64_t InRange(__m256i bytes, uint8_t first, uint8_t count) {
  const __m256i moved = _mm256_add_epi8(bytes, _mm256_set1_epi8(static_cast<char>(0x80 - first)));
  const __m256i found = _mm256_cmpgt_epi8(_mm256_set1_epi8(static_cast<char>(0x80 + count)), moved);
  return static_cast<uint32_t>(_mm256_movemask_epi8(found));
}
__attribute__((target("avx2"))) inline uint64_t Equal(__m256i bytes, char byte) {
  return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte))));
}

__attribute__((target("avx2"))) AsciiBlock ReadAvx2(const char* bytes) {
  AsciiBlock block{};
  for (int at = 0; at < 64; at += 32) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + at));
    const uint64_t letters = InRange(_mm256_or_si256(half, _mm256_set1_epi8(kFold)), 'a', 26);
    const uint64_t digits = InRange(half, '0', 10), blanks = Equal(half, ' ');
    const uint64_t spaces = InRange(half, '\t', 5) | blanks;
    const uint64_t no_ascii = static_cast<uint32_t>(_mm256_movemask_epi8(half));
    block.letters |= letters << at;
    block.digits |= digits << at;
    block.spaces |= spaces << at;
    block.others |= (~(letters | digits | spaces | no_ascii) & 0xFFFFFFFF) << at;
    block.blanks |= blanks << at;
    block.line_ends |= (Equal(half, '\n') | Equal(half, '\r')) << at;
    block.apostrophes |= Equal(half, '\'') << at;
  }
  return block;
}

__attribute__((target("avx512f,avx512bw"))) inline uint64_t InRange(__m512i bytes, char first, char count) {
  return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(bytes, _mm512_set1_epi8(first)), _mm512_set1_epi8(count));
}
__attribute__((target("avx512f,avx512bw"))) inline uint64_t Equal(__m512i bytes, char byte) {
  return _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte));
}

__attribute__((target("avx512f,avx512bw"))) AsciiBlock ReadAvx512(const char* bytes) {
  const __m512i all = _mm512_loadu_si512(bytes);
  AsciiBlock block{};
  block.letters = InRange(_mm512_or_si512(all, _mm512_set1_epi8(kFold)), 'a', 26);
  block.digits = InRange(all, '0', 10);
  block.blanks = Equal(all, ' ');
  block.spaces = InRange(all, '\t', 5) | block.blanks;
  block.others = ~(block.letters | block.digits | block.spaces | _mm512_movepi8_mask(all));
  block.line_ends = Equal(all, '\n') | Equal(all, '\r');
  block.apostrophes = Equal(all, '\'');
  return block;
}

#endif

}  // namespace

std::span<const ReadAsciiBlockFunction> SupportedReadAsciiBlocks() {
#if defined(__x86_64__)
  static constexpr std::array<ReadAsciiBlockFunction, 3> kAll = {ReadByByte, ReadAvx2, ReadAvx512};
  static const size_t supported = [] {
    if (!__builtin_cpu_supports("avx2")) return 1;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") ? 3 : 2;
  }();
#else
  static constexpr std::array<ReadAsciiBlockFunction, 1> kAll = {ReadByByte};
  static constexpr size_t supported = 1;
#endif
  return std::span(kAll).first(supported);
}

}  // namespace trainwright
