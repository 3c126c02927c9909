#include <memory>

#include "lib/tok/ascii_pieces.h"
#include "lib/tok/json_tokenizer.h"
#include "lib/tok/unicode.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace trainwright;

/// The fast way to cut a text says what the plain one does, or nothing.
template <CutRule rule>
void CheckCuts(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = PieceEnd(rule, text, begin, CharacterClasses());
    TRAINWRIGHT_CHECK(end > begin && end <= text.size());
    if (text.size() - begin >= AsciiBlock::kBytes) {
      const char* const bytes = text.data() + begin;
      uint64_t ends = AsciiPieceEnds<rule>(SupportedReadAsciiBlocks().back()(bytes), bytes);
      for (size_t at = begin; ends != 0; ends &= ends - 1) {
        at = PieceEnd(rule, text, at, CharacterClasses());
        TRAINWRIGHT_CHECK(at == begin + static_cast<size_t>(std::countr_zero(ends)));
      }
    }
    begin = end;
  }
}

}  // namespace

// A tokenizer.json file, a zero byte, and a text for it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = AsText({data, size});
  const size_t zero = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(std::min(zero + 1, input.size()));
  CheckCuts<CutRule::kGpt2>(text);
  CheckCuts<CutRule::kLlama3>(text);
  CheckCuts<CutRule::kQwen2>(text);
  CheckCuts<CutRule::kCl100k>(text);
  CheckCuts<CutRule::kO200k>(text);

  std::unique_ptr<JsonTokenizer> tokenizer;
  fuzz::MayRefuse([&] { tokenizer = MakeJsonTokenizer(std::string(input.substr(0, zero)), "input"); });
  if (tokenizer == nullptr) return 0;
  std::vector<uint32_t> ids, again;
  tokenizer->Encode(text, &ids);
  tokenizer->Encode(text, &again);  // from memory
  TRAINWRIGHT_CHECK(ids == again);
  const std::unique_ptr<Tokenizer> reference = tokenizer->MakeReference();
  if (text.size() < 4096) {
    again.clear();
    reference->Encode(text, &again);
    TRAINWRIGHT_CHECK(ids == again);
  }
  tokenizer->Decode(ids);  // refuses ids beyond the vocabulary
  TRAINWRIGHT_CHECK(TokenizerFromIdentity(tokenizer->identity())->identity() == tokenizer->identity());
  return 0;
}
