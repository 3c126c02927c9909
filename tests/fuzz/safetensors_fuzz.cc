#include "lib/formats/safetensors.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  fuzz::MayRefuse([&] {
    const SafetensorsHeader header = ParseSafetensors({data, size}, "input");
    const ByteSpan values = ByteSpan(data, size).subspan(header.data_offset);
    std::vector<SafetensorsTensor> tensors;
    for (const SafetensorsEntry& entry : header.entries) {
      tensors.push_back(
          {entry.name, entry.dtype, entry.shape, values.subspan(entry.begin, entry.end - entry.begin)});
    }
    MemorySink sink;
    WriteSafetensors(&sink, tensors, header.metadata);
    const SafetensorsHeader again = ParseSafetensors(sink.bytes(), "again");
    TRAINWRIGHT_CHECK(again.entries.size() == header.entries.size() && again.metadata == header.metadata);
  });
  return 0;
}
