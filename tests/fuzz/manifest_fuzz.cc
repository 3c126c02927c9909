#include "lib/formats/shard_set.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  fuzz::MayRefuse([&] {
    const auto entries = DecodeManifest(std::string(AsText({data, size})), "input");
    for (const ManifestEntry& entry : entries)
      TRAINWRIGHT_CHECK(entry.file_name.find('/') == std::string::npos);
    const std::string text = EncodeManifest(ShardSetHeader(), entries);
    TRAINWRIGHT_CHECK(EncodeManifest(ShardSetHeader(), DecodeManifest(text, "again")) == text);
  });
  return 0;
}
