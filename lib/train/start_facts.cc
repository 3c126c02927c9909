#include "lib/train/start_facts.h"

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/checkpoint/checkpoint.h"
#include "lib/dist/equal_facts.h"
#include "lib/loading/loader_state.h"
#include "lib/train/outlier_records.h"

namespace trainwright {
namespace {

void Update(const at::Tensor& values, Xxh128Stream* hash) {
  if (values.numel() == 0) return;
  const at::Tensor host = values.contiguous().cpu();
  hash->Update({static_cast<const uint8_t*>(host.const_data_ptr()), host.nbytes()});
}

/// What a state holds beside tensors.
std::string CountsOf(const TrainerState& state) {
  nlohmann::ordered_json counts = {{"step", state.step},
                                   {"updates", state.updates},
                                   {"tokens_seen", state.tokens_seen},
                                   {"labels_seen", state.labels_seen},
                                   {"scale", state.scaler.scale},
                                   {"good_steps", state.scaler.good_steps},
                                   {"skipped_steps", state.scaler.skipped_steps}};
  counts["outliers"] = EncodeOutlierState(state.outliers);
  EncodeLoaderStates(state.loaders, &counts);
  return counts.dump();
}

}  // namespace

Facts FactsOfWeights(const FlatParameters& parameters) {
  Xxh128Stream hash;
  for (const Parameter& parameter : parameters.all()) {
    if (!parameter.quantized()) {
      Update(parameter.value, &hash);
      continue;
    }
    for (const at::Tensor& part : parameter.matrix->parts()) Update(part, &hash);
  }
  return {{"XXH3 of the weights at the start", HexEncode(hash.Digest())}};
}

Facts FactsOfState(const TrainerState& state, const Optimizer& optimizer, const std::string& checkpoint) {
  Facts facts;
  Xxh128Stream hash;
  hash.Update(AsBytes(CountsOf(state)));
  bool sharded = false;
  for (const OptimizerState& own : optimizer.States()) {
    if (!optimizer.is_sharded(own)) {
      Update(own.value, &hash);
    } else {
      sharded = true;
    }
  }
  facts["XXH3 of the training state at the start"] = HexEncode(hash.Digest());
  if (sharded) {
    const nlohmann::json::json_pointer sha256("/files/" + std::string(kStateFileName) + "/sha256");
    facts["sha256 of the training state's file"] =
        ReadCheckpointMetadata(checkpoint).value(sha256, std::string("unknown"));
  }
  return facts;
}

void RequireSameStart(World* world, const Facts& facts) {
  RequireEqual(world, facts,
               {.hint = "give all ranks the same files: each reads its own copy of --init, --adapter and the "
                        "run that is resumed"});
}

}  // namespace trainwright
