/// Compressing a safetensors file, tensor by tensor, into either form of lib/codec/compressed_file.h.
///
/// At most three tensors (and their bases) are taken from the source at a time. The bytes written do not
/// depend on threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/codec/compressed_file.h"
#include "lib/codec/tensor_content.h"
#include "lib/io/byte_sink.h"

namespace trainwright {

/// Where the encoder takes tensors from. Called by one thread at a time, not always the same.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// The bytes of head.source.entries[entry]; each once, in order. A file that they lie in and do not own
  /// outlives the encoding.
  virtual TensorBytes Take(size_t entry) = 0;
  /// A tensor of the same size to take the difference from; called after Take of the same entry.
  virtual std::optional<TensorBytes> TakeBase(size_t entry) {
    static_cast<void>(entry);
    return {};
  }
};

struct EncodeOptions {
  CompressedForm form = CompressedForm::kSafetensors;
  int threads = 1;
  int block_log2 = kDefaultBlockLog2;
  bool verify = true;  ///< decode each block as soon as it is encoded, and compare
  std::function<void(uint64_t source_bytes)> progress = {};
};

/// Writes a compressed checkpoint; the caller commits. The level is the head's.
/// \param sink an OverwritableSink for a container
/// \throws what `source` and `sink` throw; Error{kBadInput} when a file is not what it was when it was read
/// before; Error{kUsage} see ContainerHeadBytes; Error{kInternal} when a block does not decode to what was
/// encoded
CompressedTail EncodeCheckpoint(const CompressedHead& head, TensorSource* source,
                                const EncodeOptions& options, ByteSink* sink);

/// WriteSafetensors, but as a container. The caller commits.
/// \param writer see CompressedHead
void WriteCompressedSafetensors(OverwritableSink* sink, const std::vector<SafetensorsTensor>& tensors,
                                const std::map<std::string, std::string>& metadata, CodecLevel level,
                                int threads, const std::string& writer);

/// Where a predictor by rows and columns may be tried in a tensor: what the file's metadata says about it
/// under "matrices" (a JSON object from tensor names to lists of [first element, rows, columns]), or what its
/// shape says. Nothing for integers.
std::vector<MatrixPart> MatricesOf(const SafetensorsHeader& header, const SafetensorsEntry& entry);

}  // namespace trainwright
