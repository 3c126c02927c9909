/// Slow readers of the two binary formats, written from their man pages alone: they share no code with
/// lib/formats. They take whole, valid files and check only what they stumble over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainwright::test {

struct ReferenceHeader {
  std::string magic, settings, kind, provenance, model, sha256, extension;
  uint32_t vocab_size = 0, bos = 0, eos = 0, pad = 0, unk = 0;
  int token_width = 0, record_kind = 0, flags = 0;
  size_t size_bytes = 0;
};

struct ReferencePiece {
  std::vector<uint32_t> tokens;
  int flags = 0;
  uint64_t source_bytes = 0;
};

struct ReferenceStream {
  ReferenceHeader header;
  std::vector<ReferencePiece> pieces;
  uint64_t documents = 0, tokens = 0, source_bytes = 0, blocks = 0;
};

struct ReferenceSegment {
  uint64_t tokens = 0;
  int flags = 0;
  uint64_t next_token = 0xFFFFFFFF, source_bytes = 0;
};

struct ReferenceChunk {
  std::vector<ReferenceSegment> segments;
  std::vector<uint32_t> tokens;
};

struct ReferenceShard {
  ReferenceHeader header;
  std::vector<ReferenceChunk> chunks;
  std::vector<std::string> contents;  ///< of the frames
  bool last = false;
  std::vector<uint64_t> totals;  ///< the seven counts of the index
  uint64_t loss_tokens = 0;      ///< of its frames
  std::vector<std::pair<uint32_t, uint32_t>> seek_entries;
};

ReferenceStream DecodeStreamByReference(const std::string& bytes);
/// The shards of a set that starts with shard 0.
std::vector<ReferenceShard> DecodeShardsByReference(const std::string& bytes);

}  // namespace trainwright::test
