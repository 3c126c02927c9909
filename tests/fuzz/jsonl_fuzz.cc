#include "lib/data/jsonl_text.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  JsonlText reader({"text", "message.content"});
  std::string text;
  (void)reader.Read(AsText({data, size}), &text);
  return 0;
}
