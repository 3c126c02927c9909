#include <nlohmann/json.hpp>

#include "lib/documents/jsonl_text.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  const std::string_view line = AsText({data, size});
  for (const std::string key : {"text", "message.content"}) {
    JsonlText reader({key});
    std::string text;
    // What is accepted is JSON to another parser too.
    if (!reader.Read(line, &text)) TRAINWRIGHT_CHECK(nlohmann::json::accept(line));
  }
  return 0;
}
