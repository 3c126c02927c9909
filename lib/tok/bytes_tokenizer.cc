#include "lib/tok/bytes_tokenizer.h"

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr uint32_t kBosId = 256, kEosId = 257, kVocabSize = 258;

}  // namespace

BytesTokenizer::BytesTokenizer() {
  identity_.kind = "bytes";
  identity_.sha256 = Sha256Of(AsBytes("trainwright bytes tokenizer 1"));
  identity_.vocab_size = kVocabSize;
  identity_.bos_id = kBosId;
  identity_.eos_id = kEosId;
}

void BytesTokenizer::Encode(std::string_view text, std::vector<uint32_t>* ids) const {
  const ByteSpan bytes = AsBytes(text);
  ids->insert(ids->end(), bytes.begin(), bytes.end());
}

std::string BytesTokenizer::Decode(std::span<const uint32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const uint32_t id : ids) {
    if (id >= kVocabSize) {
      throw Error(ErrorCode::kBadInput, "id " + std::to_string(id), "is not in the vocabulary of 258 ids",
                  "tokenizer bytes");
    }
    if (id < kBosId) text.push_back(static_cast<char>(id));
  }
  return text;
}

DecodedId BytesTokenizer::DecodedIdOf(uint32_t id) const {
  return {.as = id < kBosId ? DecodedAs::kText : DecodedAs::kNothing};
}

}  // namespace trainwright
