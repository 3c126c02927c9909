/// Finding the coded tensors of a compressed checkpoint whose head or footer is damaged, or that is cut.
///
/// The hash at the beginning of a coded tensor has the tensor's name and the original's header in it, so that
/// what is found where nothing says what is there is what it is taken for, and the header is the original's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/codec/compressed_file.h"
#include "lib/io/random_reader.h"

namespace trainwright {

/// Where a coded tensor is in its file.
struct CodedPlace {
  uint64_t offset = 0, size_bytes = 0;
};

struct SalvagedCheckpoint {
  CompressedHead head;                            ///< of FindHead
  std::vector<std::optional<CodedPlace>> places;  ///< as head.source.entries; nothing: not found
};

/// Reads the beginning of each block, and all of what is between tensors that are found.
/// \returns nothing where no tensor is found: the original's header is not there, or not whole
/// \throws what the file throws
std::optional<SalvagedCheckpoint> Salvage(const RandomReader& file);

}  // namespace trainwright
