/// Whether checkpoints are written in the background, as --async-save takes it: that costs host memory for a
/// copy of weights and moments.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

/// Of a copy of a model's fp32 weights and AdamW's two moments.
/// \param elements of the flat parameters
/// \param moments_bytes of both moments
int64_t SnapshotBytes(int64_t elements, int64_t moments_bytes);

struct AsyncSaveChoice {
  bool background = true;
  std::string reason;
};

/// What auto takes: the background where the copy leaves a quarter of the memory that is available.
/// \param available_bytes of host memory; 0: not known
AsyncSaveChoice ChooseAsyncSave(int64_t snapshot_bytes, int64_t available_bytes);

}  // namespace trainwright
