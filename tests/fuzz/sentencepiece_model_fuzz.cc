#include <algorithm>

#include "lib/tok/sentencepiece_bpe.h"
#include "lib/tok/sentencepiece_normalizer.h"
#include "lib/tok/sentencepiece_unigram.h"
#include "lib/tok/utf8.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace trainwright;

void EncodeAsBpe(const SentencePieceModel& model, std::string_view text) {
  std::string problem;
  const auto bpe = SentencePieceBpe::Make(model, &problem);
  TRAINWRIGHT_CHECK(bpe != nullptr || !problem.empty());
  if (bpe == nullptr) return;
  std::vector<uint32_t> ids, again;
  bpe->Encode(text, /*mark=*/true, &ids);
  bpe->Encode(text, /*mark=*/true, &again);  // from memory
  TRAINWRIGHT_CHECK(ids == again);
  for (const uint32_t id : ids) TRAINWRIGHT_CHECK(id < model.pieces.size());
}

void EncodeAsUnigram(const SentencePieceModel& model, std::string_view text) {
  const SentencePieceUnigram unigram(model, "model");
  SentencePieceUnigram::Scratch scratch;
  std::vector<uint32_t> ids, again;
  unigram.Encode(text, &scratch, &ids);
  unigram.Encode(text, &scratch, &again);
  TRAINWRIGHT_CHECK(ids == again);
  for (const uint32_t id : ids) TRAINWRIGHT_CHECK(id < model.pieces.size());
}

}  // namespace

// A model; its last bytes are the text for it, too.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = AsText({data, size});
  SentencePieceModel model;
  std::string problem;
  const bool read = ParseSentencePieceModel(input, &model, &problem);
  TRAINWRIGHT_CHECK(read || !problem.empty());
  if (!read) return 0;
  constexpr size_t kTextBytes = 300;
  const std::string_view text = input.substr(size - std::min(size, kTextBytes));
  EncodeAsBpe(model, text);
  fuzz::MayRefuse([&] {
    std::string normalized;
    SentencePieceNormalizer(model, "model").Normalize(text, /*mark=*/true, &normalized);
    TRAINWRIGHT_CHECK(FindInvalidUtf8(normalized) == std::string_view::npos);
    EncodeAsBpe(model, normalized);
    if (model.is_unigram) EncodeAsUnigram(model, normalized);
  });
  return 0;
}
