/// Small shard sets for the tests of the formats.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "lib/formats/shard.h"

namespace trainwright::test {

inline ShardSetHeader SmallShardSet(uint32_t vocab_size = 300, PackMode mode = PackMode::kBestFit) {
  ShardSetHeader header;
  header.tokenizer.kind = "sentencepiece";
  header.tokenizer.model = "a model";
  header.tokenizer.sha256 = Sha256Of(AsBytes("a model"));
  header.tokenizer.vocab_size = vocab_size;
  header.tokenizer.bos_id = 1;
  header.tokenizer.eos_id = 2;
  header.mode = mode;
  header.chunk_tokens = 8;
  header.chunks_per_frame = 2;
  header.provenance_json = R"({"tool":"test"})";
  return header;
}

/// The golden files hold these chunks: do not change them.
/// Five chunks of eight tokens with every kind of segment: whole, empty, cut at either end or both, padding.
inline std::vector<Chunk> SmallChunks(uint32_t vocab_size = 300) {
  const uint32_t top = vocab_size - 1;
  return {
      {{{5, 0, kNoId, 20}, {0, 0, kNoId, 3}, {3, kSegmentEndsMidDocument, top, 11}},
       {1, 2, 3, top, 5, 6, 7, 8}},
      {{{8, kSegmentStartsMidDocument | kSegmentEndsMidDocument, 0, 1'000'000'000'000}},
       {top, 1, 0, 0, 4, 5, 6, top}},
      {{{6, kSegmentStartsMidDocument, kNoId, 0}, {2, kSegmentPadding, kNoId, 0}}, {0, 1, 2, 3, 4, 5, 0, 0}},
      {{{8, 0, kNoId, 8}}, {7, 7, 7, 7, 7, 7, 7, 7}},
      {{{1, 0, kNoId, 2}, {7, kSegmentPadding, kNoId, 0}}, {9, 0, 0, 0, 0, 0, 0, 0}},
  };
}

/// The bytes of one shard with these chunks.
inline std::vector<uint8_t> EncodeShard(const ShardSetHeader& header, const std::vector<Chunk>& chunks,
                                        uint32_t shard_number = 0, uint64_t first_chunk = 0, bool last = true,
                                        int level = 3) {
  MemorySink sink;
  ShardWriter writer(&sink, header, shard_number, first_chunk);
  for (size_t i = 0; i < chunks.size(); i += header.chunks_per_frame) {
    const size_t count = std::min<size_t>(header.chunks_per_frame, chunks.size() - i);
    writer.AddFrame(EncodeFrame(header, std::span(chunks).subspan(i, count), first_chunk + i, level));
  }
  writer.Finish(last, 0);
  return sink.bytes();
}

inline std::vector<Chunk> ReadShardStream(ByteSpan bytes) {
  ShardStreamReader reader(MemorySource(bytes, "the shards"));
  std::vector<Chunk> chunks;
  Chunk chunk;
  while (reader.Next(&chunk)) chunks.push_back(chunk);
  return chunks;
}

inline std::vector<Chunk> ReadShardView(ByteSpan bytes) {
  const ShardView view(bytes, "the shard");
  std::vector<Chunk> chunks;
  for (size_t frame = 0; frame < view.info().frames.size(); ++frame) {
    const std::vector<Chunk> some = view.ReadFrame(frame);
    chunks.insert(chunks.end(), some.begin(), some.end());
  }
  return chunks;
}

}  // namespace trainwright::test
