// A file of --config that may be another program's. What it says wrongly is a wrong use of the tool, not bad
// input.
#include "lib/run/recipe_config.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  try {
    const auto file = ReadRecipe(AsText({data, size}), "input");
    if (!file) return 0;
    TRAINWRIGHT_CHECK(!file->program.empty() && !file->defaults.empty());
    for (const OptionValue& option : file->options) {
      TRAINWRIGHT_CHECK(!option.key.empty() && !option.value.empty());
      TRAINWRIGHT_CHECK(option.source.starts_with("input"));
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
  }
  return 0;
}
