#include "lib/tok/sentencepiece_model.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  SentencePieceModel model;
  std::string problem;
  const bool read = ParseSentencePieceModel(AsText({data, size}), &model, &problem);
  TRAINWRIGHT_CHECK(read || !problem.empty());
  return 0;
}
