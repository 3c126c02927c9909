#include <algorithm>

#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/formats/shard_set.h"

namespace trainwright {
namespace {

constexpr char kSchema[] = "trainwright.manifest/1";

/// Manifests of lm records are those of version 1.0 to the last bit.
nlohmann::json TotalsToJson(RecordKind kind, const ShardTotals& totals) {
  nlohmann::json json = {{"chunks", totals.chunks},
                         {"docs", totals.documents},
                         {"tokens", totals.tokens},
                         {"pad_tokens", totals.pad_tokens},
                         {"docs_cut", totals.documents_cut},
                         {"tokens_dropped", totals.tokens_dropped},
                         {"source_bytes", totals.source_bytes}};
  if (kind == RecordKind::kSft) json["loss_tokens"] = totals.loss_tokens;
  return json;
}

ShardTotals TotalsFromJson(const nlohmann::json& json) {
  return {.chunks = json.at("chunks").get<uint64_t>(),
          .documents = json.at("docs").get<uint64_t>(),
          .tokens = json.at("tokens").get<uint64_t>(),
          .pad_tokens = json.at("pad_tokens").get<uint64_t>(),
          .documents_cut = json.at("docs_cut").get<uint64_t>(),
          .tokens_dropped = json.at("tokens_dropped").get<uint64_t>(),
          .source_bytes = json.at("source_bytes").get<uint64_t>(),
          .loss_tokens = json.value("loss_tokens", uint64_t{0})};
}

int HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  throw std::out_of_range("not a hexadecimal digit");
}

Sha256Digest DigestFromHex(const std::string& hex) {
  Sha256Digest digest;
  if (hex.size() != digest.size() * 2) throw std::out_of_range("not a SHA-256");
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<uint8_t>(HexDigit(hex[2 * i]) << 4 | HexDigit(hex[2 * i + 1]));
  }
  return digest;
}

/// A name that stays inside the folder.
bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

std::string ShardFileName(uint32_t shard_number, const Sha256Digest& sha256) {
  std::string number = std::to_string(shard_number);
  number.insert(0, 5 - std::min<size_t>(number.size(), 5), '0');
  return "shard-" + number + "-" + HexEncode(sha256).substr(0, 12) + ".tws";
}

std::string EncodeManifest(const ShardSetHeader& header, const std::vector<ManifestEntry>& entries) {
  ShardTotals totals;
  Sha256 content;
  nlohmann::json shards = nlohmann::json::array();
  for (const ManifestEntry& entry : entries) {
    totals += entry.totals;
    content.Update(entry.content_sha256);
    shards.push_back({{"file", entry.file_name},
                      {"size_bytes", entry.size_bytes},
                      {"content_sha256", HexEncode(entry.content_sha256)},
                      {"totals", TotalsToJson(header.record_kind, entry.totals)}});
    if (!entry.provenance_json.empty()) {
      shards.back()["provenance"] = ParseJson(entry.provenance_json, "provenance");
    }
  }
  nlohmann::json manifest = {{"schema", kSchema},
                             {"content_sha256", HexEncode(content.Digest())},
                             {"mode", PackModeName(header.mode)},
                             {"overflow", OverflowPolicyName(header.overflow)},
                             {"chunk", header.chunk_tokens},
                             {"tokenizer",
                              {{"kind", header.tokenizer.kind},
                               {"sha256", HexEncode(header.tokenizer.sha256)},
                               {"vocab_size", header.tokenizer.vocab_size}}},
                             {"totals", TotalsToJson(header.record_kind, totals)},
                             {"shards", shards}};
  if (header.record_kind != RecordKind::kLm) manifest["records"] = RecordKindName(header.record_kind);
  return CanonicalJson(manifest) + "\n";
}

std::vector<ManifestEntry> DecodeManifest(const std::string& text, const std::string& path) {
  const nlohmann::json manifest = ParseJson(text, path);
  try {
    if (manifest.at("schema") != kSchema) {
      throw Error(ErrorCode::kBadInput, path, "is no manifest of a version that this program reads", "",
                  "read it with the release that wrote it, or a newer one");
    }
    std::vector<ManifestEntry> entries;
    for (const nlohmann::json& shard : manifest.at("shards")) {
      ManifestEntry entry;
      entry.file_name = shard.at("file").get<std::string>();
      entry.size_bytes = shard.at("size_bytes").get<uint64_t>();
      entry.content_sha256 = DigestFromHex(shard.at("content_sha256").get<std::string>());
      entry.totals = TotalsFromJson(shard.at("totals"));
      if (shard.contains("provenance")) entry.provenance_json = CanonicalJson(shard.at("provenance"));
      if (!IsPlainFileName(entry.file_name)) throw std::out_of_range("not a file name");
      entries.push_back(std::move(entry));
    }
    return entries;
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kBadInput, path, "is no manifest: a field is missing or of the wrong type");
  } catch (const std::out_of_range&) {
    throw Error(ErrorCode::kBadInput, path, "is corrupt: a field has an impossible value");
  }
}

}  // namespace trainwright
