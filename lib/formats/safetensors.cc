#include "lib/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "lib/base/error.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

constexpr char kMetadataKey[] = "__metadata__";

constexpr std::array<std::pair<std::string_view, uint64_t>, 22> kDtypeBits = {
    {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"U8", 8},      {"I8", 8},
     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E8M0", 8}, {"U16", 16},
     {"I16", 16},    {"F16", 16},    {"BF16", 16},       {"U32", 32},        {"I32", 32},    {"F32", 32},
     {"U64", 64},    {"I64", 64},    {"F64", 64},        {"C64", 64}}};

/// Bits of a tensor; nothing when they do not fit into 64 bits.
std::optional<uint64_t> TensorBits(const std::string& dtype, const std::vector<int64_t>& shape) {
  uint64_t elements = 1, bits;
  for (const int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(dim), &elements)) return {};
  }
  if (__builtin_mul_overflow(elements, SafetensorsElementBits(dtype), &bits)) return {};
  return bits;
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
  if (SafetensorsElementBits(entry.dtype) == 0) throw fault("its dtype '" + entry.dtype + "' is unknown");
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
  const std::optional<uint64_t> bits = TensorBits(entry.dtype, entry.shape);
  if (!bits) throw fault("its size overflows 64 bits");
  if (*bits % 8 != 0) throw fault("it does not end at a whole byte");
  if (*bits / 8 != entry.end - entry.begin)
    throw fault("its dtype and shape do not fit the size of its data");
  return entry;
}

/// Of a tensor to write.
uint64_t TensorBytes(const SafetensorsTensor& tensor) {
  const std::optional<uint64_t> bits = TensorBits(tensor.dtype, tensor.shape);
  TRAINWRIGHT_CHECK(SafetensorsElementBits(tensor.dtype) > 0 && bits && *bits % 8 == 0);
  return *bits / 8;
}

}  // namespace

uint64_t SafetensorsElementBits(const std::string& dtype) {
  for (const auto& [name, bits] : kDtypeBits) {
    if (name == dtype) return bits;
  }
  return 0;
}

const SafetensorsEntry* SafetensorsHeader::Find(const std::string& name) const {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

uint64_t SafetensorsHeadBytes(ByteSpan prefix, const std::string& path) {
  if (prefix.size() < 8) throw BadInputAt(prefix.size(), path, "is not a safetensors file: it is too short");
  const auto json_bytes = ByteParser(prefix).Read<uint64_t>();
  if (json_bytes > kMaxSafetensorsHeaderBytes)
    throw BadInputAt(0, path, "is not a safetensors file: its header would be too large");
  return 8 + json_bytes;
}

std::vector<uint8_t> JoinSafetensorsHead(std::string_view text) {
  const uint64_t size = text.size();
  std::vector<uint8_t> head(sizeof(size) + text.size());
  std::memcpy(head.data(), &size, sizeof(size));
  std::copy(text.begin(), text.end(), head.begin() + sizeof(size));
  return head;
}

SafetensorsHeader ParseSafetensorsHead(ByteSpan head, const std::string& path) {
  SafetensorsHeader header;
  header.data_offset = SafetensorsHeadBytes(head, path);
  if (header.data_offset > head.size()) throw CutShortAt(head.size(), path, "safetensors header");
  const std::string_view text = AsText(head.subspan(8, header.data_offset - 8));
  if (text.empty() || text[0] != '{')
    throw BadInputAt(8, path, "is not a safetensors file: its header is no JSON object");
  if (const size_t last = text.find_last_not_of(' '); text[last] != '}')
    throw BadInputAt(8 + last, path, "its header does not end with } and spaces");
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
  return header;
}

SafetensorsHeader ParseSafetensors(ByteSpan file, const std::string& path) {
  SafetensorsHeader header = ParseSafetensorsHead(file, path);
  const uint64_t data_bytes = file.size() - header.data_offset, next = header.data_bytes();
  if (next > data_bytes) throw CutShortAt(file.size(), path, "safetensors file");
  if (next < data_bytes) throw BadInputAt(header.data_offset + next, path, "bytes follow the last tensor");
  return header;
}

std::vector<uint8_t> EncodeSafetensorsHead(const std::vector<SafetensorsTensor>& tensors,
                                           const std::map<std::string, std::string>& metadata) {
  nlohmann::json json = nlohmann::json::object();
  if (!metadata.empty()) json[kMetadataKey] = metadata;
  uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    TRAINWRIGHT_CHECK(tensor.name != kMetadataKey && !json.contains(tensor.name));
    const uint64_t size_bytes = TensorBytes(tensor);
    TRAINWRIGHT_CHECK(tensor.make || tensor.stream ? tensor.data.empty() : tensor.data.size() == size_bytes);
    const uint64_t end = offset + size_bytes;
    json[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = CanonicalJson(json);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  TRAINWRIGHT_CHECK(text.size() <= kMaxSafetensorsHeaderBytes);
  return JoinSafetensorsHead(text);
}

void WriteSafetensors(ByteSink* sink, const std::vector<SafetensorsTensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  sink->Write(EncodeSafetensorsHead(tensors, metadata));
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.stream) {
      uint64_t written_bytes = 0;
      tensor.stream([&](ByteSpan part) {
        written_bytes += part.size();
        sink->Write(part);
      });
      TRAINWRIGHT_CHECK(written_bytes == TensorBytes(tensor));
      continue;
    }
    if (!tensor.make) {
      sink->Write(tensor.data);
      continue;
    }
    const std::vector<uint8_t> made = tensor.make();
    TRAINWRIGHT_CHECK(made.size() == TensorBytes(tensor));
    sink->Write(made);
  }
}

}  // namespace trainwright
