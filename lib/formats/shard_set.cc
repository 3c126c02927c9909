#include "lib/formats/shard_set.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/frame_content.h"
#include "lib/formats/json_text.h"
#include "lib/formats/shard_layout.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

constexpr char kRunAgain[] = "run pack again: it seals the set when it is done";

/// Whether a manifest says all that is expected of it; later releases may say more.
bool Says(const nlohmann::json& manifest, const nlohmann::json& expected) {
  if (expected.is_object() && manifest.is_object()) {
    return std::all_of(expected.items().begin(), expected.items().end(), [&](const auto& item) {
      const auto found = manifest.find(item.key());
      return found != manifest.end() && Says(*found, item.value());
    });
  }
  if (expected.is_array() && manifest.is_array()) {
    return std::equal(manifest.begin(), manifest.end(), expected.begin(), expected.end(), Says);
  }
  return manifest == expected;
}

/// What ShardSet::provenance_json() says of a folder.
std::string ProvenanceOf(const ShardSetHeader& header, const std::vector<ManifestEntry>& entries) {
  std::vector<std::string> ways = {header.provenance_json};
  for (const ManifestEntry& entry : entries) {
    const std::string& way = entry.provenance_json;
    if (!way.empty() && std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(way);
  }
  if (ways.size() == 1) return ways[0];
  std::string list;
  for (const std::string& way : ways) list += (list.empty() ? "[" : ",") + way;
  return list + "]";
}

class MappedShardSet final : public ShardSet {
 public:
  static std::unique_ptr<MappedShardSet> OpenFile(const std::string& path) {
    auto set = std::make_unique<MappedShardSet>();
    set->files_.emplace_back(path);
    const std::vector<ByteSpan> parts = ShardView::Split(set->files_[0].bytes(), path);
    for (size_t i = 0; i < parts.size(); ++i) {
      set->Add(parts[i], parts.size() == 1 ? path : path + ", shard " + std::to_string(i));
    }
    set->Seal(path);
    return set;
  }

  static std::unique_ptr<ShardSet> OpenFolder(const std::string& folder) {
    const std::string manifest_path = folder + "/" + kManifestName;
    if (!std::filesystem::exists(manifest_path)) {
      throw Error(ErrorCode::kBadInput, folder,
                  std::string("is not a finished set of shards: it has no ") + kManifestName, "",
                  std::string("pack did not finish, or the folder is another: ") + kRunAgain);
    }
    const std::vector<uint8_t> content = ReadWholeFile(manifest_path, kMaxManifestBytes);
    const std::string text(AsText(content));
    const std::vector<ManifestEntry> entries = DecodeManifest(text, manifest_path);
    auto set = std::make_unique<MappedShardSet>();
    for (const ManifestEntry& entry : entries) {
      const std::string path = folder + "/" + entry.file_name;
      if (!std::filesystem::exists(path)) throw Mismatch(path, "is missing");
      set->files_.emplace_back(path);
      const ByteSpan bytes = set->files_.back().bytes();
      if (bytes.size() != entry.size_bytes) {
        throw Mismatch(path, "holds " + std::to_string(bytes.size()) + " bytes instead of " +
                                 std::to_string(entry.size_bytes));
      }
      set->Add(bytes, path);
      if (set->shards_.back().content_sha256 != entry.content_sha256)
        throw Mismatch(path, "holds other content");
      if (set->shards_.back().totals != entry.totals) throw Mismatch(path, "counts other totals");
    }
    set->Seal(folder);
    const nlohmann::json expected = ParseJson(EncodeManifest(set->header(), entries), manifest_path);
    if (!Says(ParseJson(text, manifest_path), expected)) {
      throw Error(ErrorCode::kBadInput, manifest_path, "is corrupt: it does not describe its shards", "",
                  kRunAgain);
    }
    set->provenance_json_ = ProvenanceOf(set->header(), entries);
    return set;
  }

  void set_provenance_json(std::string provenance_json) { provenance_json_ = std::move(provenance_json); }

  const ShardSetHeader& header() const override { return shards_[0].header; }
  std::string provenance_json() const override { return provenance_json_; }
  const ShardTotals& totals() const override { return totals_; }
  const std::vector<ShardInfo>& shards() const override { return shards_; }
  uint64_t chunks() const override { return totals_.chunks; }
  std::vector<ShardSetPart> parts() const override {
    std::vector<ShardSetPart> parts = ShardSet::parts();
    parts.front().name = name_;
    return parts;
  }
  const Sha256Digest& content_sha256() const override { return content_sha256_; }

  std::vector<Chunk> ReadFrameOf(uint64_t chunk, uint64_t* first_chunk) const override {
    const ChunkLocation location = LocateChunk(*this, chunk);
    *first_chunk = location.first_chunk;
    return ReadFrame(location.shard, location.frame);
  }

  void VerifyAll() const override {
    for (size_t shard = 0; shard < views_.size(); ++shard) {
      const ShardView& view = views_[shard];
      ShardTotals found;
      for (size_t frame = 0; frame < view.info().frames.size(); ++frame)
        found += TotalsOf(view.info().header.record_kind, ReadFrame(shard, frame));
      found.tokens_dropped = view.info().totals.tokens_dropped;
      if (found != view.info().totals)
        throw Error(ErrorCode::kBadInput, view.name(), "the index counts other totals than the frames");
    }
  }

 private:
  static constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;

  static Error Mismatch(const std::string& path, const std::string& problem) {
    return Error(ErrorCode::kBadInput, path, problem + "; " + kManifestName + " says otherwise", "",
                 std::string("restore the file, or ") + kRunAgain);
  }

  std::vector<Chunk> ReadFrame(size_t shard, size_t frame) const {
    files_[files_.size() == 1 ? 0 : shard].ThrowIfCut();
    return views_[shard].ReadFrame(frame);
  }

  void Add(ByteSpan bytes, const std::string& name) {
    const ShardView& view = views_.emplace_back(bytes, name, shards_.empty() ? nullptr : &shards_[0].header);
    const ShardInfo& info = view.info();
    if (info.shard_number != shards_.size() || info.first_chunk != totals_.chunks) {
      throw Error(ErrorCode::kBadInput, name,
                  "is shard " + std::to_string(info.shard_number) + " of its set, not " +
                      std::to_string(shards_.size()) + ": shards are missing or out of order");
    }
    if (!shards_.empty() && !SameSet(info.header, shards_[0].header)) {
      throw Error(ErrorCode::kBadInput, name, "belongs to another set than the shards before it");
    }
    if (!shards_.empty() && shards_.back().last) {
      throw Error(ErrorCode::kBadInput, name, "follows the last shard of its set");
    }
    totals_ += info.totals;
    shards_.push_back(info);
  }

  void Seal(const std::string& path) {
    if (shards_.empty() || !shards_.back().last) {
      throw Error(ErrorCode::kBadInput, path, "lacks the last shard of its set", "",
                  std::string("pack did not finish, or the set was cut: ") + kRunAgain);
    }
    name_ = path;
    provenance_json_ = header().provenance_json;
    Sha256 content;
    for (const ShardInfo& shard : shards_) content.Update(shard.content_sha256);
    content_sha256_ = content.Digest();
  }

  std::string name_;
  std::string provenance_json_;  // of all shards
  std::vector<MappedFile> files_;
  std::vector<ShardView> views_;
  std::vector<ShardInfo> shards_;
  ShardTotals totals_;
  Sha256Digest content_sha256_{};
};

}  // namespace

std::string ShardSet::provenance_json() const {
  return header().provenance_json;
}

std::vector<ShardSetPart> ShardSet::parts() const {
  return {{.records = header().record_kind,
           .chunks = chunks(),
           .documents = totals().documents,
           .chunk_tokens = header().chunk_tokens,
           .provenance_json = header().provenance_json}};
}

ChunkLocation LocateChunk(const ShardSet& set, uint64_t chunk) {
  TRAINWRIGHT_CHECK(chunk < set.chunks());
  const auto starts_after = [](uint64_t wanted, const auto& item) { return wanted < item.first_chunk; };
  const std::vector<ShardInfo>& shards = set.shards();
  const auto shard = std::upper_bound(shards.begin(), shards.end(), chunk, starts_after) - 1;
  const auto frame = std::upper_bound(shard->frames.begin(), shard->frames.end(), chunk, starts_after) - 1;
  return {.shard = static_cast<size_t>(shard - shards.begin()),
          .frame = static_cast<size_t>(frame - shard->frames.begin()),
          .offset = frame->offset,
          .first_chunk = frame->first_chunk};
}

std::unique_ptr<ShardSet> ShardSet::Open(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    const size_t end = path.find_last_not_of('/');
    return MappedShardSet::OpenFolder(end == std::string::npos ? path : path.substr(0, end + 1));
  }
  return MappedShardSet::OpenFile(path);
}

std::unique_ptr<ShardSet> ShardSet::OpenCopy(const std::string& path, const ShardSet& original) {
  std::unique_ptr<MappedShardSet> copy = MappedShardSet::OpenFile(path);
  copy->set_provenance_json(original.provenance_json());
  return copy;
}

}  // namespace trainwright
