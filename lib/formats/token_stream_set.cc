#include "lib/formats/token_stream_set.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <stdexcept>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/formats/provenance.h"
#include "lib/formats/shard_set.h"
#include "lib/io/atomic_folder.h"
#include "lib/io/byte_source.h"

namespace trainwright {
namespace {

namespace fs = std::filesystem;

constexpr char kSchema[] = "trainwright.token-streams/1";
constexpr char kStreamSuffix[] = ".twt";
constexpr size_t kKeyDigits = 12, kHashBytes = 8;
constexpr char kGoesOn[] =
    "run its pretokenize command again: it keeps the streams that are finished and makes the others";

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// "xxh3:0123456789abcdef".
uint64_t HashFromName(const std::string& name) {
  uint64_t hash = 0;
  const char* const end = name.data() + name.size();
  if (!name.starts_with("xxh3:") || std::from_chars(name.data() + 5, end, hash, 16).ptr != end) {
    throw std::out_of_range("not a hash");
  }
  return hash;
}

}  // namespace

std::string StreamFileName(size_t number, const std::string& key) {
  std::string digits = std::to_string(number);
  digits.insert(0, 6 - std::min<size_t>(digits.size(), 6), '0');
  return kStreamPrefix + digits + "-" + key.substr(0, kKeyDigits) + kStreamSuffix;
}

bool IsStreamFileName(std::string_view name) {
  if (!name.starts_with(kStreamPrefix) || !name.ends_with(kStreamSuffix)) return false;
  name.remove_prefix(sizeof(kStreamPrefix) - 1);
  name.remove_suffix(sizeof(kStreamSuffix) - 1);
  const size_t digits = name.find_first_not_of("0123456789");
  return digits != std::string_view::npos && digits >= 6 && name[digits] == '-' &&
         name.size() == digits + 1 + kKeyDigits && IsHex(name.substr(digits + 1));
}

nlohmann::json ToJson(const StreamEntry& entry) {
  return {{"file", entry.file_name}, {"size_bytes", entry.size_bytes}, {"hash", HashName(entry.hash)},
          {"key", entry.key},        {"source", entry.source},         {"counts", entry.counts}};
}

StreamEntry StreamEntryFrom(const nlohmann::json& json) {
  StreamEntry entry = {.file_name = json.at("file").get<std::string>(),
                       .size_bytes = json.at("size_bytes").get<uint64_t>(),
                       .hash = HashFromName(json.at("hash").get<std::string>()),
                       .key = json.at("key").get<std::string>(),
                       .source = json.at("source").get<std::string>(),
                       .counts = json.at("counts")};
  for (const char* count : {"documents", "tokens", "source_bytes"}) entry.counts.at(count).get<uint64_t>();
  if (!IsStreamFileName(entry.file_name) || entry.key.size() != 64 || !IsHex(entry.key)) {
    throw std::out_of_range("not a stream");
  }
  return entry;
}

std::string EncodeStreamManifest(const std::vector<StreamEntry>& entries) {
  nlohmann::json streams = nlohmann::json::array();
  nlohmann::json totals;
  for (const char* count : {"documents", "tokens", "source_bytes"}) {
    uint64_t sum = 0;
    for (const StreamEntry& entry : entries) sum += entry.counts.at(count).get<uint64_t>();
    totals[count] = sum;
  }
  for (const StreamEntry& entry : entries) streams.push_back(ToJson(entry));
  return CanonicalJson({{"schema", kSchema}, {"streams", streams}, {"totals", totals}}) + "\n";
}

std::vector<StreamEntry> DecodeStreamManifest(const std::string& text, const std::string& path) {
  const nlohmann::json manifest = ParseJson(text, path);
  try {
    if (manifest.at("schema") != kSchema) {
      throw Error(ErrorCode::kBadInput, path, "is no manifest of token streams");
    }
    std::vector<StreamEntry> entries;
    for (const nlohmann::json& stream : manifest.at("streams")) entries.push_back(StreamEntryFrom(stream));
    return entries;
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::kBadInput, path,
                "is no manifest of token streams: a field is missing or of the wrong type");
  } catch (const std::out_of_range&) {
    throw Error(ErrorCode::kBadInput, path, "is corrupt: a field has an impossible value");
  }
}

uint64_t StreamHashOf(const std::string& path, uint64_t size_bytes) {
  std::array<uint8_t, kHashBytes> end{};
  BufferedReader reader(OpenSourceAt(path, size_bytes - kHashBytes));
  reader.Read(end.data(), end.size());
  return ByteParser(end).Read<uint64_t>();
}

bool LooksLike(const StreamEntry& entry, const std::string& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  return !error && size == entry.size_bytes && size >= kHashBytes && StreamHashOf(path, size) == entry.hash;
}

bool IsWhole(const StreamEntry& entry, const std::string& path) {
  if (!LooksLike(entry, path)) return false;
  const auto source = OpenSource(path);
  std::vector<uint8_t> buffer(256 << 10);
  Xxh3Stream hash;
  for (uint64_t left = entry.size_bytes - kHashBytes; left > 0;) {
    const size_t count = source->Read(buffer.data(), std::min<uint64_t>(left, buffer.size()));
    if (count == 0) return false;
    hash.Update(ByteSpan(buffer).first(count));
    left -= count;
  }
  return hash.Digest() == entry.hash;
}

std::vector<StreamEntry> EntriesOfFolder(const std::string& name) {
  const std::string folder = WithoutLastSlash(name);
  const std::string manifest = folder + "/" + kManifestName;
  const bool unfinished = fs::exists(folder + "/" + kStreamJournalName);
  if (unfinished || !fs::exists(manifest)) {
    throw Error(ErrorCode::kBadInput, folder,
                unfinished ? "is not finished: pretokenize is running there, or was stopped"
                           : "is a folder without a finished set of token streams",
                "", kGoesOn);
  }
  const std::vector<uint8_t> text = ReadWholeFile(manifest);
  return DecodeStreamManifest(std::string(AsText(text)), manifest);
}

std::vector<std::string> StreamsOfFolder(const std::string& name) {
  const std::string folder = WithoutLastSlash(name);
  std::vector<std::string> paths;
  for (const StreamEntry& entry : EntriesOfFolder(folder)) {
    paths.push_back(folder + "/" + entry.file_name);
    if (!LooksLike(entry, paths.back())) {
      throw Error(ErrorCode::kBadInput, paths.back(),
                  "is missing, or not the stream that MANIFEST.json names", "", kGoesOn);
    }
  }
  return paths;
}

std::vector<std::string> WithStreamsOfFolders(const std::vector<std::string>& paths) {
  std::vector<std::string> streams;
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (path == "-" || !fs::is_directory(path, ignored)) {
      streams.push_back(path);
    } else {
      for (std::string& stream : StreamsOfFolder(path)) streams.push_back(std::move(stream));
    }
  }
  return streams;
}

}  // namespace trainwright
