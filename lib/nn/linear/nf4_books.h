/// The constants of NF4: see lib/nn/linear/nf4.h. Torch-free.
#pragma once

#include <cstdint>
#include <span>

namespace trainwright {

/// Elements of a block of codes, and blocks of a block of scales.
inline constexpr int64_t kNf4Block = 64, kNf4ScaleBlock = 256;

/// The quantiles of the normal distribution that NF4 is made of, ascending.
std::span<const float, 16> Nf4CodeBook();
/// The 8-bit dynamic map, ascending. Thread-safe, as all here.
std::span<const float, 256> DynamicMap();

/// Both books as one value, which a kernel takes as an argument.
struct Nf4Books {
  float code_book[16];
  float dynamic_map[256];
};
Nf4Books BothNf4Books();

}  // namespace trainwright
