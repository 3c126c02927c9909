// The content of a shard's frame, without the compression and hashes around it. The first byte chooses the
// set's header. One content has one spelling: what is accepted is encoded back to the same bytes.
#include "lib/formats/frame_content.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

namespace {

// Codes of one, two and three bytes, made once for each vocabulary.
std::shared_ptr<const trainwright::IdCodes> CodesFor(uint32_t vocab_size) {
  static std::map<uint32_t, std::shared_ptr<const trainwright::IdCodes>> known;
  auto& codes = known[vocab_size];
  if (!codes) {
    std::vector<uint64_t> counts(vocab_size, 0);
    for (uint32_t id = 0; id < 200; ++id) counts[id] = 1000 - id;
    codes = std::make_shared<const trainwright::IdCodes>(trainwright::IdCodes::ForCounts(counts));
  }
  return codes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  if (size == 0) return 0;
  constexpr std::array<uint32_t, 4> kVocabularies = {300, 131072, 131073, (1 << 24) + 1};
  ShardSetHeader header;
  header.tokenizer.vocab_size = kVocabularies[data[0] & 3];
  header.mode = (data[0] & 4) != 0 ? PackMode::kNone : PackMode::kBestFit;
  header.record_kind = static_cast<RecordKind>((data[0] >> 4) % 3);
  header.chunk_tokens = 8;
  header.chunks_per_frame = 4;
  if ((data[0] & 8) != 0 && header.tokenizer.vocab_size <= IdCodes::kMaxVocabulary)
    header.id_codes = CodesFor(header.tokenizer.vocab_size);
  const ByteSpan content(data + 1, size - 1);
  fuzz::MayRefuse([&] {
    const std::vector<Chunk> chunks = DecodeFrameContent(header, content, 0, "input", 0);
    const std::vector<uint8_t> again = EncodeFrameContent(header, chunks, 0);
    TRAINWRIGHT_CHECK(std::equal(again.begin(), again.end(), content.begin(), content.end()));
  });
  return 0;
}
