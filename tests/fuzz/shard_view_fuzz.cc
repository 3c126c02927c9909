#include "lib/formats/shard.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/repair.h"

namespace trainwright {
namespace {

void ReadAll(ByteSpan bytes) {
  fuzz::MayRefuse([&] {
    for (const ByteSpan shard : ShardView::Split(bytes, "input")) {
      const ShardView view(shard, "input");
      for (size_t frame = 0; frame < view.info().frames.size(); ++frame) {
        fuzz::MayRefuse([&] { TRAINWRIGHT_CHECK(!view.ReadFrame(frame).empty()); });
      }
    }
  });
}

}  // namespace
}  // namespace trainwright

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trainwright::ReadAll({data, size});
  trainwright::ReadAll(trainwright::fuzz::RepairShard({data, size}));
  return 0;
}
