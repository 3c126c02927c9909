#include "lib/formats/shard_set.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "lib/base/error.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

constexpr char kManifestSchema[] = "trainwright.manifest/1";
constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;
constexpr char kPackHint[] = "pack writes it last: run pack again to complete or replace the set";

nlohmann::json TotalsToJson(const ShardTotals& totals) {
  return {{"chunks", totals.chunks},
          {"documents", totals.documents},
          {"documents_cut", totals.documents_cut},
          {"pad_tokens", totals.pad_tokens},
          {"source_bytes", totals.source_bytes},
          {"tokens", totals.tokens},
          {"tokens_dropped", totals.tokens_dropped}};
}

ShardTotals TotalsFromJson(const nlohmann::json& json) {
  ShardTotals totals;
  totals.chunks = json.at("chunks").get<uint64_t>();
  totals.documents = json.at("documents").get<uint64_t>();
  totals.documents_cut = json.at("documents_cut").get<uint64_t>();
  totals.pad_tokens = json.at("pad_tokens").get<uint64_t>();
  totals.source_bytes = json.at("source_bytes").get<uint64_t>();
  totals.tokens = json.at("tokens").get<uint64_t>();
  totals.tokens_dropped = json.at("tokens_dropped").get<uint64_t>();
  return totals;
}

Sha256Digest DigestFromHex(const std::string& hex) {
  const auto value_of = [](char digit) -> int {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    throw std::invalid_argument("a digit that is not hexadecimal");
  };
  Sha256Digest digest;
  if (hex.size() != 2 * digest.size()) throw std::invalid_argument("a hash of the wrong length");
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<uint8_t>(value_of(hex[2 * i]) << 4 | value_of(hex[2 * i + 1]));
  }
  return digest;
}

/// The invariants of a set agree between two of its shards; only shard 0 holds the tokenizer's model.
bool SameSet(ShardSetHeader a, ShardSetHeader b) {
  a.tokenizer.model.clear();
  b.tokenizer.model.clear();
  return a.tokenizer == b.tokenizer && a.record_kind == b.record_kind && a.mode == b.mode &&
         a.overflow == b.overflow && a.chunk_tokens == b.chunk_tokens &&
         a.chunks_per_frame == b.chunks_per_frame && a.provenance_json == b.provenance_json;
}

class OpenShardSet final : public ShardSet {
 public:
  /// Adds the next shard; `file` keeps its bytes mapped.
  void Add(ByteSpan bytes, std::string name, std::shared_ptr<const MappedFile> file) {
    views_.emplace_back(bytes, name);
    names_.push_back(std::move(name));
    files_.push_back(std::move(file));
    const ShardInfo& info = views_.back().info();
    const auto refuse = [&](const std::string& problem, const std::string& hint) {
      throw Error(ErrorCode::kBadInput, names_.back(), problem, "", hint);
    };
    if (info.shard_number != infos_.size() || info.first_chunk != totals_.chunks) {
      refuse("is shard " + std::to_string(info.shard_number) + " from chunk " +
                 std::to_string(info.first_chunk) + ", expected shard " + std::to_string(infos_.size()) +
                 " from chunk " + std::to_string(totals_.chunks),
             "a shard is missing or out of order");
    }
    if (!infos_.empty() && !SameSet(infos_.front().header, info.header)) {
      refuse("belongs to another set than shard 0", "");
    }
    infos_.push_back(info);
    totals_ += info.totals;
    identity_.Update(info.content_sha256);
  }

  void Seal(const std::string& name) {
    if (infos_.empty()) throw Error(ErrorCode::kBadInput, name, "holds no shard");
    for (size_t i = 0; i < infos_.size(); ++i) {
      const bool is_last = i + 1 == infos_.size();
      if (infos_[i].last == is_last) continue;
      throw Error(
          ErrorCode::kBadInput, names_[i],
          is_last ? "is not the last shard of its set" : "is the last shard of its set, but others follow",
          "", "shards are missing or of several sets");
    }
    content_sha256_ = identity_.Digest();
  }

  const ShardSetHeader& header() const override { return infos_.front().header; }
  const ShardTotals& totals() const override { return totals_; }
  const std::vector<ShardInfo>& shards() const override { return infos_; }
  uint64_t chunks() const override { return totals_.chunks; }
  const Sha256Digest& content_sha256() const override { return content_sha256_; }

  std::vector<Chunk> ReadFrameOf(uint64_t chunk, uint64_t* first_chunk) const override {
    TRAINWRIGHT_CHECK(chunk < totals_.chunks);
    const auto shard =
        std::prev(std::upper_bound(infos_.begin(), infos_.end(), chunk,
                                   [](uint64_t c, const ShardInfo& s) { return c < s.first_chunk; }));
    const auto frame =
        std::prev(std::upper_bound(shard->frames.begin(), shard->frames.end(), chunk,
                                   [](uint64_t c, const FrameEntry& f) { return c < f.first_chunk; }));
    *first_chunk = frame->first_chunk;
    return views_[static_cast<size_t>(shard - infos_.begin())].ReadFrame(
        static_cast<size_t>(frame - shard->frames.begin()));
  }

  void VerifyAll() const override {
    for (const ShardView& view : views_) {
      for (size_t frame = 0; frame < view.info().frames.size(); ++frame) view.ReadFrame(frame);
    }
  }

 private:
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<std::string> names_;
  std::vector<ShardView> views_;
  std::vector<ShardInfo> infos_;
  ShardTotals totals_;
  Sha256 identity_;
  Sha256Digest content_sha256_{};
};

bool IsFolder(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    throw SystemError(path, "open", errno, "write shards with: pretokenize ... | pack -o " + path);
  return S_ISDIR(info.st_mode);
}

std::unique_ptr<ShardSet> OpenFolder(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::string manifest_path = folder + "/" + kManifestName;
  struct stat info;
  if (stat(manifest_path.c_str(), &info) != 0) {
    throw Error(ErrorCode::kBadInput, folder,
                std::string("is not a sealed set of shards: it has no ") + kManifestName, "", kPackHint);
  }
  const std::vector<uint8_t> text = ReadWholeFile(manifest_path, kMaxManifestBytes);
  auto set = std::make_unique<OpenShardSet>();
  for (const ManifestEntry& entry : DecodeManifest(std::string(AsText(text)), manifest_path)) {
    const std::string path = folder + "/" + entry.file_name;
    if (stat(path.c_str(), &info) != 0) {
      throw Error(ErrorCode::kBadInput, path, std::string("is listed in ") + kManifestName + " but missing",
                  "", kPackHint);
    }
    const auto file = std::make_shared<const MappedFile>(path);
    if (file->bytes().size() != entry.size_bytes) {
      throw Error(ErrorCode::kBadInput, path,
                  "has " + std::to_string(file->bytes().size()) + " bytes, " + kManifestName + " says " +
                      std::to_string(entry.size_bytes),
                  "", kPackHint);
    }
    set->Add(file->bytes(), path, file);
    const ShardInfo& added = set->shards().back();
    if (added.content_sha256 != entry.content_sha256 || !(added.totals == entry.totals)) {
      throw Error(ErrorCode::kBadInput, path,
                  std::string("is not the shard that ") + kManifestName + " lists", "", kPackHint);
    }
  }
  set->Seal(manifest_path);
  return set;
}

std::unique_ptr<ShardSet> OpenFile(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  const std::vector<ByteSpan> shards = ShardView::Split(file->bytes(), path);
  auto set = std::make_unique<OpenShardSet>();
  for (const ByteSpan shard : shards) {
    set->Add(shard,
             shards.size() == 1 ? path : path + " (shard " + std::to_string(set->shards().size()) + ")",
             file);
  }
  set->Seal(path);
  return set;
}

}  // namespace

std::string ShardFileName(uint32_t shard_number, const Sha256Digest& content_sha256) {
  std::string number = std::to_string(shard_number);
  number.insert(0, 5 - std::min<size_t>(5, number.size()), '0');
  return "shard-" + number + "-" + HexEncode(content_sha256).substr(0, 12) + ".tws";
}

std::string EncodeManifest(const ShardSetHeader& header, const std::vector<ManifestEntry>& entries) {
  ShardTotals totals;
  nlohmann::json shards = nlohmann::json::array();
  for (const ManifestEntry& entry : entries) {
    totals += entry.totals;
    shards.push_back({{"content_sha256", HexEncode(entry.content_sha256)},
                      {"file", entry.file_name},
                      {"size_bytes", entry.size_bytes},
                      {"totals", TotalsToJson(entry.totals)}});
  }
  const nlohmann::json manifest = {
      {"schema", kManifestSchema},
      {"shards", shards},
      {"totals", TotalsToJson(totals)},
      {"chunk_tokens", header.chunk_tokens},
      {"mode", PackModeName(header.mode)},
      {"overflow", OverflowPolicyName(header.overflow)},
      {"tokenizer",
       {{"kind", header.tokenizer.kind},
        {"sha256", HexEncode(header.tokenizer.sha256)},
        {"vocab_size", header.tokenizer.vocab_size}}},
      {"provenance",
       header.provenance_json.empty() ? nlohmann::json() : nlohmann::json::parse(header.provenance_json)}};
  return manifest.dump(1) + "\n";
}

std::vector<ManifestEntry> DecodeManifest(const std::string& text, const std::string& path) {
  std::vector<ManifestEntry> entries;
  try {
    const nlohmann::json manifest = nlohmann::json::parse(text);
    const auto schema = manifest.at("schema").get<std::string>();
    if (schema != kManifestSchema) {
      throw Error(ErrorCode::kBadInput, path,
                  "has schema '" + schema + "', this build reads " + kManifestSchema);
    }
    ShardTotals sum;
    for (const nlohmann::json& shard : manifest.at("shards")) {
      ManifestEntry entry;
      entry.file_name = shard.at("file").get<std::string>();
      entry.size_bytes = shard.at("size_bytes").get<uint64_t>();
      entry.content_sha256 = DigestFromHex(shard.at("content_sha256").get<std::string>());
      entry.totals = TotalsFromJson(shard.at("totals"));
      if (entry.file_name.empty() || entry.file_name.find('/') != std::string::npos ||
          entry.file_name[0] == '.') {
        throw Error(ErrorCode::kBadInput, path,
                    "lists a shard outside its folder: '" + entry.file_name + "'");
      }
      sum += entry.totals;
      entries.push_back(std::move(entry));
    }
    if (entries.empty()) throw Error(ErrorCode::kBadInput, path, "lists no shard");
    if (!(sum == TotalsFromJson(manifest.at("totals")))) {
      throw Error(ErrorCode::kBadInput, path, "its totals are not the sum of its shards");
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // nlohmann's and DigestFromHex's
    throw Error(ErrorCode::kBadInput, path, std::string("is not a manifest of shards: ") + error.what(), "",
                kPackHint);
  }
  return entries;
}

std::unique_ptr<ShardSet> ShardSet::Open(const std::string& path) {
  return IsFolder(path) ? OpenFolder(path) : OpenFile(path);
}

}  // namespace trainwright
