#include "lib/train/run_provenance.h"

#include "lib/base/bytes.h"
#include "lib/formats/json_text.h"
#include "lib/run/plan_codec.h"
#include "lib/spec/config_json.h"

namespace trainwright {

nlohmann::ordered_json ProvenanceOf(const ResolvedRun& run, const ModelSetup& setup) {
  const ShardSetHeader& header = run.data->set().header();
  nlohmann::ordered_json provenance = {
      {"model", nlohmann::ordered_json::parse(EncodeConfigJson(run.model.config))},
      {"plan", EncodePlan(run.plan)},
      {"data_sha256", HexEncode(run.data->set().content_sha256())},
      {"tokenizer_sha256", HexEncode(header.tokenizer.sha256)},
      {"data_provenance", OrderedJsonOf(run.data->set().provenance_json())},
  };
  if (!setup.init_provenance.is_null()) provenance["init"] = setup.init_provenance;
  if (run.parent) {
    provenance["parent"] = {{"step", run.parent->step},
                            {"weights_sha256", run.parent->weights_sha256},
                            {"state_sha256", run.parent->state_sha256}};
  }
  return provenance;
}

}  // namespace trainwright
