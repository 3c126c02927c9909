/// Whether checkpoints are written in the background, as --async-save takes it: that costs host memory for a
/// copy of weights and the optimizer's states.
#pragma once

#include <cstdint>
#include <string>

namespace trainwright {

struct AsyncSaveChoice {
  bool background = true;
  std::string reason;
};

/// What auto takes: the background where the copy leaves a quarter of the memory that is available.
/// \param available_bytes of host memory; 0: not known
AsyncSaveChoice ChooseAsyncSave(int64_t snapshot_bytes, int64_t available_bytes);

}  // namespace trainwright
