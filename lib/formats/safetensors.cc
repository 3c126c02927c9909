#include "lib/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference library's limit
constexpr char kMetadataKey[] = "__metadata__";

constexpr std::array<std::pair<std::string_view, uint64_t>, 16> kDtypes = {{{"BOOL", 1},
                                                                            {"U8", 1},
                                                                            {"I8", 1},
                                                                            {"F8_E5M2", 1},
                                                                            {"F8_E4M3", 1},
                                                                            {"F8_E8M0", 1},
                                                                            {"U16", 2},
                                                                            {"I16", 2},
                                                                            {"F16", 2},
                                                                            {"BF16", 2},
                                                                            {"U32", 4},
                                                                            {"I32", 4},
                                                                            {"F32", 4},
                                                                            {"U64", 8},
                                                                            {"I64", 8},
                                                                            {"F64", 8}}};

/// Bytes of a tensor; kNoSize when they do not fit into 64 bits.
constexpr uint64_t kNoSize = UINT64_MAX;
uint64_t TensorBytes(const std::string& dtype, const std::vector<int64_t>& shape) {
  uint64_t bytes = SafetensorsElementBytes(dtype);
  for (const int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)) return kNoSize;
  }
  return bytes;
}

uint64_t UnsignedFrom(const nlohmann::json& json) {
  if (!json.is_number_unsigned())
    throw Error(ErrorCode::kBadInput, "", "a size is not a non-negative integer");
  return json.get<uint64_t>();
}

SafetensorsEntry EntryFrom(const std::string& name, const nlohmann::json& json) {
  const auto fault = [](const std::string& why) { return Error(ErrorCode::kBadInput, "", why); };
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    throw fault("must have dtype, shape and data_offsets, and nothing else");
  }
  SafetensorsEntry entry;
  entry.name = name;
  if (!json["dtype"].is_string()) throw fault("its dtype is not a string");
  entry.dtype = json["dtype"].get<std::string>();
  if (SafetensorsElementBytes(entry.dtype) == 0) throw fault("its dtype '" + entry.dtype + "' is unknown");
  if (!json["shape"].is_array()) throw fault("its shape is not a list");
  for (const nlohmann::json& dim : json["shape"]) {
    const uint64_t size = UnsignedFrom(dim);
    if (size > INT64_MAX) throw fault("its shape is too large");
    entry.shape.push_back(static_cast<int64_t>(size));
  }
  const nlohmann::json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) throw fault("its data_offsets are not a pair");
  entry.begin = UnsignedFrom(offsets[0]);
  entry.end = UnsignedFrom(offsets[1]);
  if (entry.begin > entry.end) throw fault("its data end before they begin");
  if (TensorBytes(entry.dtype, entry.shape) != entry.end - entry.begin) {
    throw fault("its dtype and shape do not fit the size of its data");
  }
  return entry;
}

}  // namespace

uint64_t SafetensorsElementBytes(const std::string& dtype) {
  for (const auto& [name, size_bytes] : kDtypes) {
    if (name == dtype) return size_bytes;
  }
  return 0;
}

const SafetensorsEntry* SafetensorsHeader::Find(const std::string& name) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

SafetensorsHeader ParseSafetensors(ByteSpan file, const std::string& path) {
  if (file.size() < 8) throw BadInputAt(file.size(), path, "is not a safetensors file: it is too short");
  const auto json_bytes = ByteParser(file).Read<uint64_t>();
  if (json_bytes > kMaxHeaderBytes)
    throw BadInputAt(0, path, "is not a safetensors file: its header would be too large");
  if (json_bytes > file.size() - 8) throw CutShortAt(file.size(), path, "safetensors header");
  SafetensorsHeader header;
  header.data_offset = 8 + json_bytes;
  const std::string_view text = AsText(file.subspan(8, json_bytes));
  if (text.empty() || text[0] != '{')
    throw BadInputAt(8, path, "is not a safetensors file: its header is no JSON object");
  const nlohmann::json json = ParseJson(text, path);
  if (!json.is_object()) throw BadInputAt(8, path, "is not a safetensors file: its header is no JSON object");

  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      if (!value.is_object()) throw BadInputAt(8, path, "its __metadata__ is no JSON object");
      for (const auto& [key, item] : value.items()) {
        if (!item.is_string())
          throw BadInputAt(8, path, "its __metadata__ holds something other than strings");
        header.metadata[key] = item.get<std::string>();
      }
      continue;
    }
    try {
      header.entries.push_back(EntryFrom(name, value));
    } catch (const Error& error) {
      throw BadInputAt(8, path, "tensor '" + name + "': " + error.problem());
    }
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& left, const SafetensorsEntry& right) {
              return std::tie(left.begin, left.end, left.name) < std::tie(right.begin, right.end, right.name);
            });
  uint64_t next = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != next)
      throw BadInputAt(8, path, "tensor '" + entry.name + "': its data do not follow those before them");
    next = entry.end;
  }
  const uint64_t data_bytes = file.size() - header.data_offset;
  if (next > data_bytes) throw CutShortAt(file.size(), path, "safetensors file");
  if (next < data_bytes) throw BadInputAt(header.data_offset + next, path, "bytes follow the last tensor");
  return header;
}

void WriteSafetensors(ByteSink* sink, const std::vector<SafetensorsTensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::json json = nlohmann::json::object();
  if (!metadata.empty()) json[kMetadataKey] = metadata;
  uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    TRAINWRIGHT_CHECK(tensor.name != kMetadataKey && !json.contains(tensor.name));
    const uint64_t size = TensorBytes(tensor.dtype, tensor.shape);
    TRAINWRIGHT_CHECK(SafetensorsElementBytes(tensor.dtype) > 0 &&
                      (tensor.make ? tensor.data.empty() : tensor.data.size() == size));
    const uint64_t end = offset + size;
    json[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = CanonicalJson(json);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  TRAINWRIGHT_CHECK(text.size() <= kMaxHeaderBytes);
  std::vector<uint8_t> head;
  AppendInteger(&head, static_cast<uint64_t>(text.size()));
  AppendBytes(&head, AsBytes(text));
  sink->Write(head);
  for (const SafetensorsTensor& tensor : tensors) {
    if (!tensor.make) {
      sink->Write(tensor.data);
      continue;
    }
    const std::vector<uint8_t> made = tensor.make();
    TRAINWRIGHT_CHECK(made.size() == TensorBytes(tensor.dtype, tensor.shape));
    sink->Write(made);
  }
}

}  // namespace trainwright
