#include "lib/model/context_cache.h"

#include <ATen/ops/from_blob.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/formats/json_text.h"
#include "lib/formats/safetensors.h"
#include "lib/io/byte_sink.h"
#include "lib/io/byte_source.h"
#include "lib/io/file_checksum.h"
#include "lib/model/weights_io.h"

namespace trainwright {
namespace {

constexpr char kContextSchema[] = "trainwright.context/1";
constexpr char kIndexFileName[] = "index.jsonl";
constexpr char kCausalName[] = "causal", kBidirectionalName[] = "bidirectional";
constexpr char kFirstPosition[] = "0";
constexpr char kConfigSha256[] = "config_sha256";
constexpr uint64_t kMostIndexBytes = uint64_t{1} << 32;

std::string MaskName(AttentionMask mask) {
  return mask == AttentionMask::kBidirectional ? kBidirectionalName : kCausalName;
}

std::string SafetensorsType(at::ScalarType type) {
  return type == at::kBFloat16 ? "BF16" : type == at::kHalf ? "F16" : "F32";
}

ByteSpan BytesOf(const at::Tensor& tensor) {
  return {static_cast<const uint8_t*>(tensor.const_data_ptr()), tensor.nbytes()};
}

[[noreturn]] void RefuseContext(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::kBadInput, path, problem, "",
              "make the contexts again with embed --context-cache, by the same model and precision");
}

const SafetensorsEntry& TensorNamed(const SafetensorsHeader& header, const char* name,
                                    const std::string& path) {
  const SafetensorsEntry* entry = header.Find(name);
  if (entry == nullptr) RefuseContext(path, std::string("lacks the tensor ") + name);
  return *entry;
}

}  // namespace

ContextCacheWriter::ContextCacheWriter(const std::string& folder, ContextIdentity identity)
    : folder_(folder, /*replace=*/false), identity_(std::move(identity)) {}

void ContextCacheWriter::Add(const std::string& id, const CachedContext& context) {
  char name[32];
  std::snprintf(name, sizeof(name), "%08zu.safetensors", files_.size());
  const std::string file = name;
  if (!files_.emplace(id, file).second) {
    throw Error(ErrorCode::kBadInput, "id " + id, "is that of two texts", "",
                "a context is asked for by its id: give each text its own");
  }
  const at::Tensor keys = context.cache.keys_lgmk.contiguous(),
                   values = context.cache.values_lgmk.contiguous();
  const auto tokens = static_cast<int64_t>(context.tokens.size());
  TRAINWRIGHT_CHECK(keys.is_cpu() && keys.size(2) == tokens && values.sizes() == keys.sizes());
  const std::string type = SafetensorsType(keys.scalar_type());
  const auto* ids = reinterpret_cast<const uint8_t*>(context.tokens.data());
  const std::vector<SafetensorsTensor> tensors = {
      {"ids", "I64", {tokens}, {ids, context.tokens.size() * sizeof(int64_t)}},
      {"keys", type, keys.sizes().vec(), BytesOf(keys)},
      {"values", type, values.sizes().vec(), BytesOf(values)}};
  std::map<std::string, std::string> metadata = {{"schema", kContextSchema},
                                                 {"model_sha256", identity_.model_sha256},
                                                 {"precision", identity_.precision},
                                                 {"mask", MaskName(context.mask)},
                                                 {"first_position", kFirstPosition}};
  if (!identity_.config_sha256.empty()) metadata.emplace(kConfigSha256, identity_.config_sha256);
  AtomicFileSink sink(folder_.temporary() + "/" + file);
  WriteSafetensors(&sink, tensors, metadata);
  sink.Commit();
  const nlohmann::ordered_json line = {{"id", id},
                                       {"file", file},
                                       {"tokens", tokens},
                                       {"mask", MaskName(context.mask)},
                                       {"sha256", Sha256OfFile(folder_.temporary() + "/" + file)}};
  index_ += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void ContextCacheWriter::Commit() {
  WriteFileAtomically(folder_.temporary() + "/" + kIndexFileName, AsBytes(index_));
  folder_.Commit();
}

ContextCache::ContextCache(const std::string& folder, const ContextIdentity& identity)
    : folder_(folder), identity_(identity) {
  const std::string path = folder + "/" + kIndexFileName;
  if (!std::filesystem::exists(path)) {
    throw Error(ErrorCode::kBadInput, folder, std::string("holds no ") + kIndexFileName, "",
                "name a folder that embed --context-cache wrote");
  }
  const std::vector<uint8_t> text = ReadWholeFile(path, kMostIndexBytes);
  std::istringstream lines{std::string(AsText(text))};
  for (std::string line; std::getline(lines, line);) {
    const auto entry = JsonOf(line);
    const auto text_of = [&](const char* name) {
      const bool good = entry.is_object() && entry.contains(name) && entry[name].is_string();
      if (!good) RefuseContext(path, std::string("has a line without ") + name);
      return entry[name].get<std::string>();
    };
    const std::string file = text_of("file");
    if (file.empty() || file.find('/') != std::string::npos) RefuseContext(path, "names no file of its own");
    const auto text_or_none = [&](const char* name) { return entry.contains(name) ? text_of(name) : ""; };
    File kept = {.name = file, .sha256 = text_or_none("sha256"), .mask = text_or_none("mask")};
    if (const auto tokens = entry.find("tokens"); tokens != entry.end()) {
      if (!tokens->is_number_integer()) RefuseContext(path, "has a line whose tokens are no number");
      kept.tokens = tokens->get<int64_t>();
    }
    const std::string id = text_of("id");
    if (!files_.emplace(id, std::move(kept)).second) RefuseContext(path, "has two lines of the id " + id);
  }
  if (!files_.empty()) Read(files_.begin()->first);  // refuses another model's before anything is computed
}

CachedContext ContextCache::Read(const std::string& id) const {
  const auto found = files_.find(id);
  if (found == files_.end()) {
    throw Error(ErrorCode::kBadInput, "context " + id, "is not in " + folder_, "",
                "index.jsonl there lists all ids");
  }
  const File& listed = found->second;
  const std::string path = folder_ + "/" + listed.name;
  const MappedFile mapped(path);
  if (!listed.sha256.empty() && HexEncode(Sha256Of(mapped.bytes())) != listed.sha256) {
    RefuseContext(path, std::string("is damaged: its bytes are not those that ") + kIndexFileName + " lists");
  }
  const SafetensorsHeader header = ParseSafetensors(mapped.bytes(), path);
  const auto said = [&](const char* name) {
    const auto value = header.metadata.find(name);
    return value != header.metadata.end() ? value->second : "";
  };
  if (said("schema") != kContextSchema) RefuseContext(path, "is no kept context");
  if (said("model_sha256") != identity_.model_sha256) RefuseContext(path, "is of another model");
  if (identity_.HasOtherConfig(said(kConfigSha256))) {
    RefuseContext(path, "was made with another config.json, or another scale of the adapter");
  }
  if (said("precision") != identity_.precision) RefuseContext(path, "is of precision " + said("precision"));
  if (said("first_position") != kFirstPosition) RefuseContext(path, "holds keys at other positions");
  const std::string mask = said("mask");
  if (mask != kCausalName && mask != kBidirectionalName) RefuseContext(path, "is of another mask: " + mask);
  const auto refuse_as_listed = [&](const std::string& what) {
    RefuseContext(path, "is of another " + what + " than " + kIndexFileName + " lists");
  };
  if (!listed.mask.empty() && listed.mask != mask) refuse_as_listed("mask");
  CachedContext context;
  context.mask = mask == kBidirectionalName ? AttentionMask::kBidirectional : AttentionMask::kCausal;
  const auto data_of = [&](const SafetensorsEntry& entry) {
    return mapped.bytes().data() + header.data_offset + entry.begin;
  };
  const SafetensorsEntry& ids = TensorNamed(header, "ids", path);
  const SafetensorsEntry& keys = TensorNamed(header, "keys", path);
  const SafetensorsEntry& values = TensorNamed(header, "values", path);
  const bool shaped = ids.dtype == "I64" && ids.shape.size() == 1 && keys.shape.size() == 4 &&
                      keys.shape[2] == ids.shape[0] && values.shape == keys.shape;
  if (!shaped) RefuseContext(path, "holds tensors of other shapes than a context's");
  if (listed.tokens && *listed.tokens != ids.shape[0]) refuse_as_listed("number of tokens");
  context.tokens.resize(static_cast<size_t>(ids.shape[0]));
  std::memcpy(context.tokens.data(), data_of(ids), context.tokens.size() * sizeof(int64_t));
  context.cache.keys_lgmk = ViewTensor(keys, data_of(keys), path, keys.shape).clone();
  context.cache.values_lgmk = ViewTensor(values, data_of(values), path, values.shape).clone();
  return context;
}

}  // namespace trainwright
