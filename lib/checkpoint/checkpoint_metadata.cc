#include "lib/checkpoint/checkpoint_metadata.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/base/utc_time.h"
#include "lib/base/version.h"
#include "lib/formats/indented_json.h"
#include "lib/formats/json_text.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/io/file_checksum.h"

namespace trainwright {
namespace {

constexpr char kSchemaPrefix[] = "trainwright.";  // of all schemas

/// Piece by piece, each of which leaves memory: whole files would be most of what a process takes at its
/// peak.
std::string HashOf(const MappedFile& file) {
  constexpr size_t kPiece = size_t{4} << 20;
  Sha256 hash;
  for (size_t begin = 0; begin < file.bytes().size(); begin += kPiece) {
    const ByteSpan piece = file.bytes().subspan(begin, std::min(kPiece, file.bytes().size() - begin));
    hash.Update(piece);
    file.Release(piece);
  }
  return HexEncode(hash.Digest());
}

nlohmann::ordered_json DescribeFile(const std::string& path) {
  const std::string sha256 = Sha256OfFile(path);
  return {{"size_bytes", std::filesystem::file_size(path)}, {"sha256", sha256}};
}

void WriteMetadata(const std::string& folder, const nlohmann::ordered_json& metadata) {
  WriteFileAtomically(folder + "/" + kCheckpointMetadataFile, AsBytes(IndentedJsonOf(metadata)));
}

/// As OrderedJsonOf, with its members in their order.
nlohmann::ordered_json ReadInOrder(const std::string& metadata_path) {
  return OrderedJsonOf(AsText(ReadWholeFile(metadata_path, uint64_t{64} << 20)));
}

/// Whether a metadata.json is one that train wrote, perhaps damaged: by its schema or, where that is what is
/// damaged, by hashes of files. Other programs keep files of this name beside models, too.
template <typename Json>
bool IsOurs(const Json& metadata) {
  if (metadata.is_discarded()) return true;  // nobody can tell
  if (!metadata.is_object()) return false;
  const auto schema = metadata.find("schema"), files = metadata.find("files");
  if (schema != metadata.end() && schema->is_string() &&
      schema->template get_ref<const std::string&>().starts_with(kSchemaPrefix)) {
    return true;
  }
  return files != metadata.end() && files->is_object() &&
         std::any_of(files->begin(), files->end(),
                     [](const Json& entry) { return entry.is_object() && entry.contains("sha256"); });
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace

bool IsCheckpointFileName(const std::string& name) {
  for (size_t begin = 0;;) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == name.size()) return true;
    begin = end + 1;
  }
}

bool VerifyCheckpointFiles(const std::string& folder, FileHashes* hashes) {
  const std::string path = folder + "/" + kCheckpointMetadataFile;
  if (!std::filesystem::exists(path)) return false;
  const std::vector<uint8_t> text = ReadWholeFile(path, uint64_t{64} << 20);
  const auto metadata = JsonOf(AsText(text));
  if (metadata.is_discarded()) {
    throw Error(ErrorCode::kBadInput, path, "is no JSON", "",
                "fetch the folder again, or delete the file where another program than train wrote it");
  }
  if (!IsOurs(metadata)) return false;
  if (!metadata.contains("files") || !metadata["files"].is_object()) {
    throw Error(ErrorCode::kBadInput, path, "lists no files");
  }
  // A folder of a model alone may be edited by its user.
  const std::string hint = metadata.value("schema", nlohmann::json()) == kModelSchema
                               ? "of files that were changed on purpose, delete metadata.json"
                               : "";
  for (const auto& [name, entry] : metadata["files"].items()) {
    const bool usable = IsCheckpointFileName(name) && entry.is_object() && entry.contains("sha256") &&
                        entry["sha256"].is_string();
    if (!usable) throw Error(ErrorCode::kBadInput, path, "the entry of file '" + name + "' is malformed");
    const std::string file_path = folder + "/" + name;
    if (!std::filesystem::exists(file_path)) {
      throw Error(ErrorCode::kBadInput, file_path, "is missing, though metadata.json lists it", "", hint);
    }
    const MappedFile file(file_path);
    if (HashOf(file) != entry["sha256"].get<std::string>()) {
      throw Error(ErrorCode::kBadInput, file_path, "does not match its sha256 in metadata.json", "", hint);
    }
    if (hashes != nullptr) hashes->emplace(name, entry["sha256"].get<std::string>());
  }
  return true;
}

nlohmann::ordered_json DescribeFiles(const std::string& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, nlohmann::ordered_json> files;  // sorted by name
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory()) continue;
    files[entry.path().lexically_relative(folder).string()] = DescribeFile(entry.path().string());
  }
  return files;
}

nlohmann::ordered_json MetadataOfModel(const nlohmann::ordered_json& files,
                                       const nlohmann::ordered_json& provenance) {
  return {{"schema", kModelSchema},
          {"tool", "train"},
          {"version", TRAINWRIGHT_VERSION},
          {"files", files},
          {"provenance", provenance}};
}

void WriteInnerMetadata(const std::string& folder, const std::string& name,
                        const nlohmann::ordered_json& fields, nlohmann::ordered_json* files) {
  const std::string prefix = name + "/";
  std::map<std::string, nlohmann::ordered_json> listed, inner;  // sorted by name
  for (const auto& [file, entry] : files->items()) {
    listed[file] = entry;
    if (file.starts_with(prefix)) inner[file.substr(prefix.size())] = entry;
  }
  nlohmann::ordered_json metadata = MetadataOfModel(inner, nullptr);
  metadata.update(fields);
  WriteMetadata(folder + "/" + name, metadata);
  listed[prefix + kCheckpointMetadataFile] = DescribeFile(folder + "/" + prefix + kCheckpointMetadataFile);
  *files = listed;
}

void WriteFolderMetadata(const std::string& folder, nlohmann::ordered_json metadata) {
  for (const char* field : {"saved_at", "timestamp", "host"}) metadata["volatile"].push_back(field);
  metadata["saved_at"] = Rfc3339Now();
  metadata["timestamp"] = metadata["saved_at"];  // its name in the guide of ReFocused-AI
  metadata["host"] = HostName();
  WriteMetadata(folder, metadata);
}

void ChangeFolderMetadata(const std::string& folder,
                          const std::function<void(nlohmann::ordered_json*)>& change) {
  const std::string path = folder + "/" + kCheckpointMetadataFile;
  nlohmann::ordered_json metadata = ReadInOrder(path);
  if (!metadata.is_object()) throw Error(ErrorCode::kBadInput, path, "is no JSON object");
  change(&metadata);
  WriteMetadata(folder, metadata);
}

nlohmann::ordered_json ReadCheckpointProvenance(const std::string& folder, const std::string& field) {
  const std::string path = folder + "/" + kCheckpointMetadataFile;
  if (!std::filesystem::exists(path)) return nullptr;
  const nlohmann::ordered_json metadata = ReadInOrder(path);
  if (!IsOurs(metadata)) return nullptr;
  const auto at = [](const nlohmann::ordered_json& object, const std::string& key) {
    return object.is_object() && object.contains(key) ? object[key] : nlohmann::ordered_json();
  };
  return at(at(metadata, "provenance"), field);
}

nlohmann::ordered_json ReadEvalSplit(const std::string& folder) {
  const nlohmann::ordered_json plan = ReadCheckpointProvenance(folder, "plan");
  if (plan.is_object()) return plan.value(kEvalSplitField, nlohmann::ordered_json());
  return ReadCheckpointProvenance(folder, kEvalSplitField);
}

}  // namespace trainwright
