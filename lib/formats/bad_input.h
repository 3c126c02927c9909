/// Refusing input: the errors and the careful reads that the formats' parsers share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/io/byte_source.h"

namespace trainwright {

/// An Error{kBadInput} about the bytes at `offset` of `object`.
Error BadInputAt(uint64_t offset, const std::string& object, const std::string& problem,
                 std::string hint = "");

/// The Error{kBadInput} for data that ends where more must come: its producer died, or it was cut on the way.
/// \param what the thing that is not whole: "token stream", "shard"
Error CutShortAt(uint64_t offset, const std::string& object, const std::string& what);

/// Appends exactly `size` bytes, or as many as there are, to `out`. Memory grows with what arrives, never
/// with what a size field claims.
/// \returns the number appended
size_t AppendFrom(BufferedReader* reader, size_t size, std::vector<uint8_t>* out);

}  // namespace trainwright
