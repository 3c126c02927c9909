#include "tests/formats/reference_decoder.h"

#include <xxhash.h>
#include <zstd.h>

#include <map>
#include <stdexcept>

namespace trainwright::test {
namespace {

void Expect(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

/// A cursor over bytes that reads numbers one byte at a time.
struct Cursor {
  const std::string& bytes;
  size_t at = 0;

  uint64_t Number(int width) {
    uint64_t value = 0;
    for (int i = 0; i < width; ++i) value |= uint64_t{static_cast<uint8_t>(bytes.at(at++))} << (8 * i);
    return value;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const uint64_t byte = Number(1);
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  std::string Text(size_t size) {
    Expect(at + size <= bytes.size(), "cut");
    at += size;
    return bytes.substr(at - size, size);
  }
  void Hash(size_t from) {
    const uint64_t hash = XXH3_64bits(bytes.data() + from, at - from);
    Expect(Number(8) == hash, "hash");
  }
};

ReferenceHeader ReadHeader(Cursor* cursor) {
  const size_t start = cursor->at;
  ReferenceHeader header;
  header.magic = cursor->Text(8);
  Expect(cursor->Number(2) == 1, "major version");
  const uint64_t minor_version = cursor->Number(2);
  header.size_bytes = cursor->Number(4);
  header.flags = static_cast<int>(cursor->Number(8));
  Expect(header.flags <= 1, "required flags");
  Expect(cursor->Number(8) == 0, "optional flags");
  header.vocab_size = static_cast<uint32_t>(cursor->Number(4));
  header.bos = static_cast<uint32_t>(cursor->Number(4));
  header.eos = static_cast<uint32_t>(cursor->Number(4));
  header.pad = static_cast<uint32_t>(cursor->Number(4));
  header.unk = static_cast<uint32_t>(cursor->Number(4));
  header.record_kind = static_cast<int>(cursor->Number(1));
  const bool own_kind = header.record_kind >= 128;
  Expect(header.record_kind <= 2 || own_kind, "record kind");
  const int expected_minor = own_kind ? 4 : header.flags == 1 ? 3 : header.record_kind;
  Expect(minor_version == static_cast<uint64_t>(expected_minor), "minor version");
  header.token_width = static_cast<int>(cursor->Number(1));
  const size_t settings = cursor->Number(2);
  header.sha256 = cursor->Text(32);
  const size_t kind = cursor->Number(4), provenance = cursor->Number(4), model = cursor->Number(4);
  const size_t extension = cursor->Number(4);
  Expect(header.flags == 1 || extension == 0, "zero");
  header.settings = cursor->Text(settings);
  header.kind = cursor->Text(kind);
  header.provenance = cursor->Text(provenance);
  header.model = cursor->Text(model);
  header.extension = cursor->Text(extension);
  cursor->Hash(start);
  Expect(cursor->at == start + header.size_bytes, "header size");
  return header;
}

std::string Decompress(const std::string& frame) {
  std::string content(ZSTD_getFrameContentSize(frame.data(), frame.size()), '\0');
  Expect(ZSTD_decompress(content.data(), content.size(), frame.data(), frame.size()) == content.size(),
         "zstd");
  return content;
}

/// The ids of a vocabulary, each with its code, in the order of the codes.
std::vector<std::pair<std::string, uint32_t>> CodesOf(const ReferenceHeader& header) {
  Cursor table{header.extension};
  const int one_byte = static_cast<int>(table.Number(1)), three_byte = static_cast<int>(table.Number(1));
  const uint64_t ranked = table.Number(4);
  std::vector<uint32_t> order;
  for (uint64_t i = 0; i < ranked; ++i) {
    uint64_t id = Cursor{header.extension, 6 + 2 * i}.Number(2);
    if (header.vocab_size > 65536) id += 65536 * Cursor{header.extension, 6 + 2 * ranked + i}.Number(1);
    order.push_back(static_cast<uint32_t>(id));
  }
  std::vector<bool> known(header.vocab_size, false);
  for (const uint32_t id : order) known[id] = true;
  for (uint32_t id = 0; id < header.vocab_size; ++id) {
    if (!known[id]) order.push_back(id);
  }
  std::vector<std::pair<std::string, uint32_t>> codes;
  for (int first = 0; first < 256 && codes.size() < order.size(); ++first) {
    const int bytes = first < one_byte ? 1 : first < 256 - three_byte ? 2 : 3;
    for (int rest = 0; rest < 1 << (8 * (bytes - 1)) && codes.size() < order.size(); ++rest) {
      std::string code(1, static_cast<char>(first));
      for (int i = 0; i < bytes - 1; ++i) code += static_cast<char>(rest >> (8 * i));
      codes.emplace_back(code, order[codes.size()]);
    }
  }
  return codes;
}

void ReadFrame(const std::string& content, const ReferenceHeader& header, int high_bits,
               std::vector<ReferenceChunk>* chunks) {
  std::map<std::string, uint32_t> id_of_code;
  if (header.flags == 1) {
    for (const auto& [code, id] : CodesOf(header)) id_of_code[code] = id;
  }
  Cursor cursor{content};
  Expect(cursor.Text(4) == "TFRM", "frame tag");
  const uint64_t count = cursor.Number(4);
  Expect(cursor.Number(8) == chunks->size(), "first chunk");
  const uint64_t table_bytes = cursor.Number(4), tokens = cursor.Number(4);
  const size_t low = cursor.at + table_bytes, high = low + 2 * tokens;
  size_t token = 0, code_at = low;
  for (uint64_t i = 0; i < count; ++i) {
    ReferenceChunk chunk;
    size_t chunk_tokens = 0;
    for (uint64_t segments = cursor.Varint(); segments > 0; --segments) {
      ReferenceSegment segment;
      segment.tokens = cursor.Varint();
      segment.flags = static_cast<int>(cursor.Number(1));
      if ((segment.flags & 2) != 0) segment.next_token = cursor.Varint();
      segment.source_bytes = cursor.Varint();
      chunk_tokens += segment.tokens;
      for (uint64_t k = 0; k < segment.tokens && header.flags == 0; ++k) {
        uint64_t id = Cursor{content, low + 2 * token}.Number(2);
        if (high_bits == 1)
          id += 65536 * ((static_cast<uint8_t>(content.at(high + token / 8)) >> (token % 8)) & 1);
        if (high_bits == 8) id += 65536 * Cursor{content, high + token}.Number(1);
        if (high_bits == 16) id += 65536 * Cursor{content, high + 2 * token}.Number(2);
        chunk.tokens.push_back(static_cast<uint32_t>(id));
        ++token;
      }
      chunk.segments.push_back(segment);
    }
    if (header.flags == 1) {
      const size_t end = code_at + cursor.Varint();
      for (; chunk.tokens.size() < chunk_tokens; ++token) {
        std::string code;
        while (!id_of_code.contains(code)) code += content.at(code_at++);
        chunk.tokens.push_back(id_of_code.at(code));
      }
      Expect(code_at == end, "codes");
    }
    chunks->push_back(chunk);
  }
  Expect(token == tokens && cursor.at == low, "frame table");
  if (header.flags == 1) {
    Expect(content.size() == code_at, "frame size");
    return;
  }
  Expect(content.size() == high + (tokens * static_cast<uint64_t>(high_bits) + 7) / 8, "frame size");
}

}  // namespace

ReferenceStream DecodeStreamByReference(const std::string& bytes) {
  Cursor cursor{bytes};
  ReferenceStream stream;
  stream.header = ReadHeader(&cursor);
  while (true) {
    const size_t start = cursor.at;
    const std::string tag = cursor.Text(4);
    if (tag == "TEND") {
      Expect(cursor.Number(4) == 0, "zero");
      stream.documents = cursor.Number(8);
      stream.tokens = cursor.Number(8);
      stream.source_bytes = cursor.Number(8);
      stream.blocks = cursor.Number(8);
      cursor.Hash(0);
      Expect(cursor.at == bytes.size(), "end");
      return stream;
    }
    Expect(tag == "TBLK", "block tag");
    const uint64_t pieces = cursor.Number(4), table_bytes = cursor.Number(4), tokens = cursor.Number(4);
    Cursor ids{bytes, cursor.at + table_bytes};
    const size_t end = ids.at + tokens * static_cast<uint64_t>(stream.header.token_width);
    for (uint64_t i = 0; i < pieces; ++i) {
      ReferencePiece piece;
      const uint64_t count = cursor.Varint();
      piece.flags = static_cast<int>(cursor.Number(1));
      piece.source_bytes = cursor.Varint();
      for (uint64_t k = 0; k < count; ++k) {
        piece.tokens.push_back(static_cast<uint32_t>(ids.Number(stream.header.token_width)));
      }
      stream.pieces.push_back(piece);
    }
    Expect(ids.at == end, "block size");
    cursor.at = end;
    cursor.Hash(start);
  }
}

std::vector<ReferenceShard> DecodeShardsByReference(const std::string& bytes) {
  std::vector<ReferenceShard> shards;
  std::vector<ReferenceChunk> chunks;  // of all shards: chunk numbers count through
  Cursor cursor{bytes};
  while (cursor.at < bytes.size()) {
    const size_t shard_start = cursor.at, chunks_before = chunks.size();
    ReferenceShard shard;
    Expect(cursor.Number(4) == 0x184D2A50, "header frame");
    const size_t header_bytes = cursor.Number(4);
    shard.header = ReadHeader(&cursor);
    Expect(shard.header.size_bytes == header_bytes, "header frame size");
    Cursor settings{shard.header.settings};
    settings.at = 2;
    const int high_bits = static_cast<int>(settings.Number(1));
    settings.at = 12;
    Expect(settings.Number(4) == shards.size(), "shard number");
    Expect(settings.Number(8) == chunks.size(), "first chunk");

    const size_t frames_start = cursor.at;
    std::vector<size_t> offsets;
    while (Cursor{bytes, cursor.at}.Number(4) == 0xFD2FB528) {
      offsets.push_back(cursor.at);
      const size_t size = ZSTD_findFrameCompressedSize(bytes.data() + cursor.at, bytes.size() - cursor.at);
      shard.contents.push_back(Decompress(cursor.Text(size)));
      ReadFrame(shard.contents.back(), shard.header, high_bits, &chunks);
    }
    const size_t index_start = cursor.at;
    offsets.push_back(index_start);
    Expect(cursor.Number(4) == 0x184D2A51, "index frame");
    const size_t index_bytes = cursor.Number(4) + 8;
    Expect(cursor.Text(8) == "\x02TWSIDX1", "index magic");
    shard.last = cursor.Number(4) == 1;
    Expect(cursor.Number(4) == shards.size() && cursor.Number(8) == chunks_before, "index numbers");
    Expect(cursor.Number(8) == frames_start - shard_start, "header size");
    Expect(cursor.Number(8) == XXH3_64bits(bytes.data() + shard_start, frames_start - shard_start),
           "header hash");
    const uint64_t frames = cursor.Number(8);
    Expect(frames == shard.contents.size(), "frames");
    for (int i = 0; i < 7; ++i) shard.totals.push_back(cursor.Number(8));
    cursor.Text(32);
    for (uint64_t i = 0; i < frames; ++i) {
      const size_t size = offsets[i + 1] - offsets[i];
      Expect(cursor.Number(8) == offsets[i] - shard_start, "offset");
      Expect(cursor.Number(8) == XXH3_64bits(bytes.data() + offsets[i], size), "frame hash");
      Expect(cursor.Number(8) == XXH3_64bits(shard.contents[i].data(), shard.contents[i].size()),
             "content hash");
      Expect(cursor.Number(8) == Cursor{shard.contents[i], 8}.Number(8), "first chunk of a frame");
      Expect(cursor.Number(4) == size && cursor.Number(4) == shard.contents[i].size(), "frame sizes");
      Expect(cursor.Number(4) == Cursor{shard.contents[i], 4}.Number(4), "frame chunks");
      shard.loss_tokens += cursor.Number(4);
    }
    Expect(cursor.Number(8) == index_bytes, "index size");
    const uint64_t shard_bytes = cursor.Number(8);
    Expect(cursor.Text(8) == "\x03TWSEND1", "trailer magic");
    cursor.Hash(index_start);
    Expect(cursor.at == index_start + index_bytes, "index end");

    Expect(cursor.Number(4) == 0x184D2A5E, "seek frame");
    Expect(cursor.Number(4) == (frames + 2) * 8 + 9, "seek size");
    for (uint64_t i = 0; i < frames + 2; ++i) {
      const auto size = static_cast<uint32_t>(cursor.Number(4));
      shard.seek_entries.emplace_back(size, static_cast<uint32_t>(cursor.Number(4)));
    }
    Expect(cursor.Number(4) == frames + 2 && cursor.Number(1) == 0 && cursor.Number(4) == 0x8F92EAB1,
           "seek footer");
    Expect(cursor.at - shard_start == shard_bytes, "shard size");
    shard.chunks.assign(chunks.begin() + static_cast<ptrdiff_t>(chunks_before), chunks.end());
    shards.push_back(shard);
  }
  return shards;
}

}  // namespace trainwright::test
