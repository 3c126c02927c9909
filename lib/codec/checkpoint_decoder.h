/// Restoring the safetensors file from a compressed checkpoint that is read from its beginning to its end: a
/// file or a pipe, in either form.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/codec/compressed_file.h"
#include "lib/codec/tensor_content.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"

namespace trainwright {

/// The file that tensors were coded against. Thread-compatible.
class BaseTensors {
 public:
  virtual ~BaseTensors() = default;
  /// For messages: the path.
  virtual const std::string& name() const = 0;
  /// Of the whole plain file.
  virtual Xxh128Digest Hash() = 0;
  /// The tensor of this name; nothing when there is not one of this type and size. It may lie in what belongs
  /// to this.
  virtual std::optional<TensorBytes> Read(const SafetensorsEntry& entry) = 0;
};

/// \throws Error{kBadInput} when `head` needs a base and `base` (may be null) is not it
void CheckBase(const CompressedHead& head, BaseTensors* base, const std::string& path);

struct DecodeOptions {
  int threads = 1;
  BaseTensors* base = nullptr;  ///< null: none was given
  /// Without the base that is needed, only check what is stored. For `out` = null.
  bool allow_missing_base = false;
  std::function<void(uint64_t source_bytes)> progress = {};
};

struct DecodedCheckpoint {
  CompressedForm form = CompressedForm::kSafetensors;
  CompressedHead head;
  CompressedTail tail;
  uint64_t compressed_bytes = 0;
  bool content_checked = true;  ///< false: blocks were checked as stored, see allow_missing_base
};

/// Checks everything that is stored and, where `out` is not null, writes the source file; the caller commits
/// only when this returns.
/// \throws Error{kBadInput} naming tensor, block and place in the input; what `in` and `out` throw
DecodedCheckpoint DecodeCheckpoint(BufferedReader* in, ByteSink* out, const DecodeOptions& options);

/// Rewrites a compressed checkpoint in another form (or the same); coded tensors are checked as stored and
/// passed on. The result has the bytes that compressing the source in that form gives.
/// \param out an OverwritableSink for a container
/// \throws as DecodeCheckpoint
DecodedCheckpoint ConvertCheckpoint(BufferedReader* in, CompressedForm form, ByteSink* out,
                                    const std::function<void(uint64_t source_bytes)>& progress = {});

}  // namespace trainwright
