// The content of a shard's frame, without the compression and hashes around it. The first byte chooses the
// set's header. One content has one spelling: what is accepted is encoded back to the same bytes.
#include "lib/formats/frame_content.h"

#include <algorithm>
#include <array>

#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainwright;
  if (size == 0) return 0;
  constexpr std::array<uint32_t, 4> kVocabularies = {300, 131072, 131073, (1 << 24) + 1};
  ShardSetHeader header;
  header.tokenizer.vocab_size = kVocabularies[data[0] & 3];
  header.mode = (data[0] & 4) != 0 ? PackMode::kNone : PackMode::kBestFit;
  header.chunk_tokens = 8;
  header.chunks_per_frame = 4;
  const ByteSpan content(data + 1, size - 1);
  fuzz::MayRefuse([&] {
    const std::vector<Chunk> chunks = DecodeFrameContent(header, content, 0, "input", 0);
    const std::vector<uint8_t> again = EncodeFrameContent(header, chunks, 0);
    TRAINWRIGHT_CHECK(std::equal(again.begin(), again.end(), content.begin(), content.end()));
  });
  return 0;
}
