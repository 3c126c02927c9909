/// Reading of a block of 4-bit codes: see lib/nn/linear/nf4.h. Torch-free.
#pragma once

#include <cstdint>

namespace trainwright::cpu {

/// out[i] = book[code i] * magnitude, the high half of a byte first. Every instruction set gives the same
/// bits.
/// \param size at most 64
/// \param book 16 values
/// \param out 64 elements, those past `size` undefined
void DequantizeNf4Block(const uint8_t* codes, int64_t size, const float* book, float magnitude, float* out);

/// The same in plain C++, whatever the CPU has.
void DequantizeNf4BlockByElement(const uint8_t* codes, int64_t size, const float* book, float magnitude,
                                 float* out);

}  // namespace trainwright::cpu
