/// Taking single tensors, or slices of them, out of a compressed checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/codec/compressed_checkpoint.h"
#include "lib/io/byte_sink.h"

namespace trainwright {

/// A tensor, or its rows [first, last) along the first dimension.
struct TensorPart {
  std::string name;
  std::optional<uint64_t> first, last;  ///< nothing: from the beginning, to the end
};

/// "NAME[a:b]", "NAME[a:]", "NAME[:b]".
/// \throws Error{kUsage} on another text
TensorPart ParseSlice(const std::string& text);

/// Writes the bytes of the parts, one after the other, reading only the blocks that hold them.
/// \param base null where none is given
/// \throws Error{kUsage} on an unknown name or rows outside the tensor; Error{kBadInput, kIo}
void ExtractRaw(const CompressedCheckpoint& checkpoint, const std::vector<TensorPart>& parts,
                BaseTensors* base, ByteSink* sink);

/// The same as a safetensors file with the original's metadata.
/// \param lost names of damaged tensors for the metadata, if any
void ExtractSafetensors(const CompressedCheckpoint& checkpoint, const std::vector<TensorPart>& parts,
                        BaseTensors* base, const std::vector<std::string>& lost, ByteSink* sink);

}  // namespace trainwright
