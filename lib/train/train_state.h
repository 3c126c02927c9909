/// trainwright_state.safetensors of a checkpoint: what besides the weights the next step depends on. Format:
/// man/trainwright-checkpoint.5, version 2; version 1 is read, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/bytes.h"
#include "lib/run/train_plan.h"
#include "lib/spec/device_choices.h"
#include "lib/train/trainer.h"

namespace trainwright {

/// What besides plan, data and weights decides the bits of a run. A resumed run on other values is the same
/// run up to rounding only.
struct ComputeIdentity {
  std::string device;          ///< "cpu"
  std::string cpu_capability;  ///< "AVX512+BF16"
  std::string torch_build;
  int64_t threads = 0;
  std::string attention = "auto";        ///< the backend asked for
  std::string scan = "fused";            ///< the kind of it, of models that scan
  bool tf32 = false;                     ///< fp32 GEMMs of a GPU round to TF32
  bool fills_up = false;                 ///< micro-batches are filled up for graphs: see PassGraphs
  std::string residual_stream = "fp32";  ///< type that a transformer's is stored in
  DeviceChoices choices;                 ///< stored without what was measured
  bool operator==(const ComputeIdentity&) const = default;
};

/// Where the writer of a run whose states are sharded takes them from.
struct ShardedStates {
  int64_t elements = 0;  ///< of each state that is sharded, on all ranks together
  /// Reads some that lie side by side.
  /// \param state its number among the optimizer's
  /// \param out of its type, on the host
  std::function<void(size_t state, int64_t begin, at::Tensor out)> read = {};
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
  /// Where it has `read`, states by_element are written from there, part after part. Not read.
  ShardedStates sharded = {};
};

/// How the file is written. The state that is read back is the same.
struct StateCompression {
  bool on = false;
  int threads = 1;
};
/// \pre states that are sharded are not compressed
void WriteTrainState(const std::string& path, const TrainState& state,
                     const StateCompression& compression = {});
/// Where the tensors of a state that was read lie.
enum class StateTensors {
  kOwned,  ///< in memory
  /// In the file, which stays mapped as long as there are tensors of it; they are not to be written to, and
  /// what of them is not read takes no memory. Those of a compressed file are in memory all the same.
  kMapped
};
/// Of a file in either form.
/// \throws Error{kBadInput} on another schema, a missing field, an accumulation phase other than 0 or counts
/// that contradict each other; Error{kIo}
TrainState ReadTrainState(const std::string& path, StateTensors tensors = StateTensors::kOwned);
/// The same of a file's content.
/// \param path for the messages
TrainState DecodeTrainState(ByteSpan file, const std::string& path);

}  // namespace trainwright
