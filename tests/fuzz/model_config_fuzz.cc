#include "lib/spec/built_in_families.h"
#include "lib/spec/config_json.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  static const FamilyList families = BuiltInDescriptions();
  fuzz::MayRefuse([&] {
    const ModelConfig config = DecodeConfigJson(families, std::string(AsText({data, size})), "input");
    TRAINWRIGHT_CHECK(config.num_heads > 0 && config.num_heads % config.num_kv_heads == 0);
    TRAINWRIGHT_CHECK(DecodeConfigJson(families, EncodeConfigJson(config), "again") == config);
  });
  return 0;
}
