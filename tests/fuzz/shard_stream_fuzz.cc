#include "lib/formats/shard.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/repair.h"

namespace trainwright {
namespace {

void ReadAll(ByteSpan bytes) {
  fuzz::MayRefuse([&] {
    ShardStreamReader reader(MemorySource(bytes));
    Chunk chunk;
    uint64_t chunks = 0;
    while (reader.Next(&chunk)) ++chunks;
    TRAINWRIGHT_CHECK(chunks == reader.totals().chunks);
  });
}

}  // namespace
}  // namespace trainwright

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trainwright::ReadAll({data, size});
  trainwright::ReadAll(trainwright::fuzz::RepairShard({data, size}));
  return 0;
}
