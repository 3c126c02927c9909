// The file of generate --state-out: what is accepted is written as the same state.
#include <string>
#include <vector>

#include "lib/eval/state_file.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  const ContextIdentity identity = {"0123", "fp32"};
  fuzz::MayRefuse([&] {
    const RecurrentState state = DecodeState({data, size}, "input", identity);
    MemorySink sink;
    WriteState(&sink, identity, state);
    MemorySink again;
    WriteState(&again, identity, DecodeState(sink.bytes(), "again", identity));
    TRAINWRIGHT_CHECK(again.bytes() == sink.bytes());
  });
  return 0;
}
