/// How often each byte occurs in a piece of a plane, counted or estimated from a sample. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/base/bytes.h"
#include "lib/codec/cpu/kernels.h"

namespace trainwright::codec {

using SymbolCounts = std::array<uint32_t, 256>;

/// Counts, or with `one_in` > 1 estimates: one stretch of every `one_in` is counted and multiplied, at
/// places that follow no period of the data. Which bytes occur is exact all the same, because a table of
/// rANS has no room for another: a count is 0 where the byte does not occur, and only there. A piece too
/// small for a sample is counted.
///
/// Where bytes are independent, an estimate from k counted ones makes s different symbols longer by about
/// (s - 1) / (2 k ln 2) bits each.
SymbolCounts CountSymbols(const Kernels& kernels, ByteSpan piece, size_t one_in);
/// Whether it estimates.
bool CountsSample(size_t piece_bytes, size_t one_in);

}  // namespace trainwright::codec
