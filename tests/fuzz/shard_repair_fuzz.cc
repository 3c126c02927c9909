// Salvage from arbitrary bytes: what it saves is always a sound set.
#include <sys/mman.h>
#include <unistd.h>

#include "lib/packing/shard_repair.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/repair.h"
#include "tests/support/memory_shard_output.h"

namespace trainwright {
namespace {

void RepairBytes(ByteSpan bytes) {
  const int file = memfd_create("input", MFD_CLOEXEC);
  TRAINWRIGHT_CHECK(file >= 0 &&
                    write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  fuzz::MayRefuse([&] {
    RepairOptions options;
    options.input = "/proc/self/fd/" + std::to_string(file);
    test::MemoryShardOutput output;
    const RepairReport report = RepairShardsInto(options, &output);
    uint64_t chunks = 0;
    for (const ByteSpan shard : ShardView::Split(output.bytes(), "saved")) {
      const ShardView view(shard, "saved");
      for (size_t frame = 0; frame < view.info().frames.size(); ++frame)
        chunks += view.ReadFrame(frame).size();
    }
    TRAINWRIGHT_CHECK(chunks == report.set.totals.chunks && chunks > 0);
  });
  close(file);
}

}  // namespace
}  // namespace trainwright

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trainwright::RepairBytes({data, size});
  trainwright::RepairBytes(trainwright::fuzz::RepairShard({data, size}));
  return 0;
}
