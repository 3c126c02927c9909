// trainwright_state.safetensors, plan and all. The first byte chooses: the file itself, or the JSON text of
// the state inside a file that is right otherwise, which a mutation of the file would hardly reach.
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/run/plan_codec.h"
#include "lib/train/train_state.h"
#include "tests/fuzz/fuzz_target.h"

namespace trainwright {
namespace {

void Decode(ByteSpan file) {
  fuzz::MayRefuse([&] {
    const TrainState state = DecodeTrainState(file, "input");
    TRAINWRIGHT_CHECK(state.plan.samples_per_step() >= 1);
    const std::string plan = EncodePlan(state.plan).dump();
    TRAINWRIGHT_CHECK(EncodePlan(DecodePlan(nlohmann::json::parse(plan), "again")).dump() == plan);
  });
}

}  // namespace
}  // namespace trainwright

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  if (size == 0) return 0;
  const ByteSpan input(data + 1, size - 1);
  if (data[0] == 'f') {
    Decode(input);
    return 0;
  }
  const nlohmann::json header = {
      {"__metadata__", {{"format", "trainwright"}, {"state", AsText(input)}, {"layout", "[]"}}},
      {"exp_avg", {{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {0, 4}}}},
      {"exp_avg_sq", {{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {4, 8}}}}};
  const std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const uint64_t text_bytes = text.size();
  std::vector<uint8_t> file(sizeof(text_bytes) + text.size() + 8);
  std::memcpy(file.data(), &text_bytes, sizeof(text_bytes));
  std::memcpy(file.data() + sizeof(text_bytes), text.data(), text.size());
  Decode(file);
  return 0;
}
