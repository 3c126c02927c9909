// A file of --deepspeed. What it says wrongly is a wrong use of the tool, not bad input.
#include "lib/run/deepspeed_config.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  try {
    const OptionsOfFile file = ParseDeepSpeedConfig(AsText({data, size}), "input");
    for (const OptionValue& option : file.options) {
      TRAINWRIGHT_CHECK(!option.key.empty() && !option.value.empty());
      TRAINWRIGHT_CHECK(option.source.starts_with("input"));
    }
    for (const OptionValue& other : file.others) {
      TRAINWRIGHT_CHECK(other.key == kTrainBatchSize && std::stoll(other.value) >= 1);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
  }
  return 0;
}
