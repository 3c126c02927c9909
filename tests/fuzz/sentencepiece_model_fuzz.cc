#include "lib/tok/sentencepiece_bpe.h"
#include "tests/fuzz/fuzz_target.h"

// A model; its last bytes are the text for it, too.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  const std::string_view input = AsText({data, size});
  SentencePieceModel model;
  std::string problem;
  const bool read = ParseSentencePieceModel(input, &model, &problem);
  TRAINWRIGHT_CHECK(read || !problem.empty());
  if (!read) return 0;
  const auto bpe = SentencePieceBpe::Make(model, &problem);
  TRAINWRIGHT_CHECK(bpe != nullptr || !problem.empty());
  if (bpe == nullptr) return 0;
  constexpr size_t kTextBytes = 300;
  const std::string_view text = input.substr(size - std::min(size, kTextBytes));
  std::vector<uint32_t> ids, again;
  bpe->Encode(text, /*mark=*/true, &ids);
  bpe->Encode(text, /*mark=*/true, &again);  // from memory
  TRAINWRIGHT_CHECK(ids == again);
  for (const uint32_t id : ids) TRAINWRIGHT_CHECK(id < model.pieces.size());
  return 0;
}
