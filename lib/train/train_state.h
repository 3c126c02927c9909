/// trainwright_state.safetensors of a checkpoint: what besides the weights the next step depends on. Format:
/// man/trainwright-checkpoint.5, version 2; version 1 is read, too.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/bytes.h"
#include "lib/run/train_plan.h"
#include "lib/train/trainer.h"

namespace trainwright {

/// What besides plan, data and weights decides the bits of a run. A resumed run on other values is the same
/// run up to rounding only.
struct ComputeIdentity {
  std::string device;          ///< "cpu"
  std::string cpu_capability;  ///< "AVX512+BF16"
  std::string torch_build;
  int64_t threads = 0;
  std::string attention = "auto";  ///< the backend asked for
  bool operator==(const ComputeIdentity&) const = default;
};

/// The content of trainwright_state.safetensors.
struct TrainState {
  TrainPlan plan;
  TrainerState trainer;
  ComputeIdentity compute;
  std::string data_sha256;  ///< of the shard set's content
  std::string layout;       ///< canonical JSON: name, offset and size of every parameter in the flat buffers
  nlohmann::json watchdog;  ///< of LossWatchdog; or null
  /// JSON for the encoder of compressed states: where matrices lie in the flat buffers, by the names of the
  /// tensors; see trainwright-compressed-checkpoint(5). Not read.
  std::string matrices = {};
};

/// How the file is written. The state that is read back is the same.
struct StateCompression {
  bool on = false;
  int threads = 1;
};
void WriteTrainState(const std::string& path, const TrainState& state,
                     const StateCompression& compression = {});
/// Of a file in either form.
/// \throws Error{kBadInput} on another schema, a missing field, an accumulation phase other than 0 or counts
/// that contradict each other; Error{kIo}
TrainState ReadTrainState(const std::string& path);
/// The same of a file's content.
/// \param path for the messages
TrainState DecodeTrainState(ByteSpan file, const std::string& path);

}  // namespace trainwright
