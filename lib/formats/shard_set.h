/// A sealed folder of shards, or one file of concatenated shards, opened for random access.
///
/// A folder is sealed by MANIFEST.json, written last and atomically: it names every shard with size and
/// content hash. A folder without it, or whose shards do not match it, is refused. Shard files are named
/// shard-<number>-<first 12 hex digits of the SHA-256 of their bytes>.tws, so a new set can be written beside
/// the old one, even one of equal content at another compression level, and replaces it in the single rename
/// of the manifest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/formats/shard.h"

namespace trainwright {

inline constexpr char kManifestName[] = "MANIFEST.json";

struct ManifestEntry {
  std::string file_name;
  uint64_t size_bytes = 0;
  Sha256Digest content_sha256{};
  ShardTotals totals;
  /// Of a shard that was appended to the set: how it was made. Else empty: the shard's header says it.
  std::string provenance_json;
};

/// MANIFEST.json as text: canonical JSON, schema "trainwright.manifest/1", with totals, tokenizer and pack
/// settings.
std::string EncodeManifest(const ShardSetHeader& header, const std::vector<ManifestEntry>& entries);
/// \throws Error{kBadInput} naming `path`
std::vector<ManifestEntry> DecodeManifest(const std::string& text, const std::string& path);
/// \param sha256 of the shard's bytes
std::string ShardFileName(uint32_t shard_number, const Sha256Digest& sha256);

/// Where a chunk lies.
struct ChunkLocation {
  size_t shard = 0;          ///< in shards()
  size_t frame = 0;          ///< in the shard
  uint64_t offset = 0;       ///< of the frame in the shard, in bytes
  uint64_t first_chunk = 0;  ///< of the frame
};

/// Chunks of a set that were made together: a set that was packed by itself is one part.
struct ShardSetPart {
  RecordKind records = RecordKind::kLm;
  uint64_t first_chunk = 0, chunks = 0;
  uint64_t documents = 0;       ///< as in ShardTotals
  uint32_t chunk_tokens = 0;    ///< as in ShardSetHeader
  std::string name;             ///< the path it was opened by, for messages; may be empty
  std::string provenance_json;  ///< as in ShardSetHeader
};

/// Const methods are thread-safe.
class ShardSet {
 public:
  /// \param path a sealed folder or a file
  /// \throws Error{kBadInput, kIo}
  static std::unique_ptr<ShardSet> Open(const std::string& path);
  /// Opens a file of the shards of `original`, which lacks that one's manifest: its provenance is that of the
  /// original.
  /// \throws Error{kBadInput, kIo}
  static std::unique_ptr<ShardSet> OpenCopy(const std::string& path, const ShardSet& original);
  virtual ~ShardSet() = default;
  virtual const ShardSetHeader& header() const = 0;  ///< with the tokenizer's model
  /// How the whole set was made: what the header says, or, where shards that were appended were made
  /// otherwise, a JSON list of that and of each of these ways.
  virtual std::string provenance_json() const;
  virtual const ShardTotals& totals() const = 0;
  virtual const std::vector<ShardInfo>& shards() const = 0;
  virtual uint64_t chunks() const = 0;
  /// In the order of their chunks; one, unless sets were joined.
  virtual std::vector<ShardSetPart> parts() const;
  /// Identity of the whole set's content: SHA-256 over the shards' content hashes in order.
  virtual const Sha256Digest& content_sha256() const = 0;
  /// The chunks of the frame that holds global chunk number `chunk`, and the number of the first of them.
  virtual std::vector<Chunk> ReadFrameOf(uint64_t chunk, uint64_t* first_chunk) const = 0;
  /// Checks every byte of every shard.
  /// \throws Error{kBadInput} at the first that disagrees
  virtual void VerifyAll() const = 0;
};

/// By the set's index, without reading the chunk.
/// \param chunk < set.chunks()
ChunkLocation LocateChunk(const ShardSet& set, uint64_t chunk);

}  // namespace trainwright
