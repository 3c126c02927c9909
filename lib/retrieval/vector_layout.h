/// What the writer and the readers of files of vectors have in common.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trainwright {

inline constexpr std::array<uint8_t, 6> kNpyMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
/// Of version 1.0, with blanks before the newline that ends its header, so that any number of rows fits.
inline constexpr size_t kNpyBeginningBytes = 128;

inline constexpr std::array<uint8_t, 8> kRawMagic = {'T', 'W', 'V', 'E', 'C', 0, 0, 1};
/// Magic, u64 rows, u32 columns, u32 flags, 32 bytes of hash, 8 zero bytes.
inline constexpr size_t kRawBeginningBytes = 64;
inline constexpr uint32_t kRawNormalized = 1;  ///< a flag: rows have the length 1

}  // namespace trainwright
