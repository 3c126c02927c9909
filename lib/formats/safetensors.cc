#include "lib/formats/safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "lib/base/error.h"

namespace trainwright {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr char kMetadataKey[] = "__metadata__";

/// Collects the top-level object while refusing duplicate keys, which nlohmann::json alone would merge
/// silently.
nlohmann::json ParseHeaderJson(std::string_view text, const std::string& path) {
  std::vector<std::set<std::string>> open_objects;
  std::string duplicate;
  const auto watch = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open_objects.emplace_back();
    if (event == Event::object_end) open_objects.pop_back();
    if (event == Event::key && !open_objects.back().insert(value.get<std::string>()).second) {
      duplicate = value.get<std::string>();
    }
    return true;
  };
  nlohmann::json header = nlohmann::json::parse(text, watch, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object()) {
    throw Error(ErrorCode::kBadInput, path, "the safetensors header is not a JSON object", "byte 8");
  }
  if (!duplicate.empty())
    throw Error(ErrorCode::kBadInput, path, "tensor '" + duplicate + "' is listed twice");
  return header;
}

SafetensorsEntry ParseEntry(const std::string& name, const nlohmann::json& value,
                            const std::string& path) {
  const auto bad = [&](const std::string& problem) {
    return Error(ErrorCode::kBadInput, path, "tensor '" + name + "': " + problem);
  };
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets")) {
    throw bad("needs exactly dtype, shape and data_offsets");
  }
  const auto& dtype = value["dtype"];
  const auto& shape = value["shape"];
  const auto& offsets = value["data_offsets"];
  if (!dtype.is_string() || SafetensorsElementBytes(dtype.get<std::string>()) == 0) {
    throw bad("unknown dtype " + dtype.dump());
  }
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = dtype.get<std::string>();
  if (!shape.is_array()) throw bad("shape is not a list");
  uint64_t size_bytes = SafetensorsElementBytes(entry.dtype);
  for (const auto& extent : shape) {
    if (!extent.is_number_unsigned()) throw bad("shape holds " + extent.dump());
    const auto value_u64 = extent.get<uint64_t>();
    if (value_u64 > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
        __builtin_mul_overflow(size_bytes, value_u64, &size_bytes)) {
      throw bad("its size overflows 64 bits");
    }
    entry.shape.push_back(static_cast<int64_t>(value_u64));
  }
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    throw bad("data_offsets is not a pair of byte offsets");
  }
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.end < entry.begin || entry.end - entry.begin != size_bytes) {
    throw bad("data_offsets do not span the " + std::to_string(size_bytes) + " bytes of its shape and dtype");
  }
  return entry;
}

}  // namespace

uint64_t SafetensorsElementBytes(const std::string& dtype) {
  static constexpr std::pair<std::string_view, uint64_t> kSizes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
      {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8}};
  for (const auto& [name, size_bytes] : kSizes) {
    if (dtype == name) return size_bytes;
  }
  return 0;
}

const SafetensorsEntry* SafetensorsHeader::Find(const std::string& name) const {
  for (const SafetensorsEntry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

SafetensorsHeader ParseSafetensors(ByteSpan file, const std::string& path) {
  ByteParser parser(file);
  const auto header_bytes = parser.Read<uint64_t>();
  if (parser.failed()) throw Error(ErrorCode::kBadInput, path, "is too short to be a safetensors file");
  if (header_bytes > kMaxHeaderBytes) {
    throw Error(ErrorCode::kBadInput, path, "its header claims " + std::to_string(header_bytes) + " bytes",
                "byte 0", "is it a safetensors file?");
  }
  const ByteSpan text = parser.ReadBytes(header_bytes);
  if (parser.failed()) {
    throw Error(ErrorCode::kBadInput, path,
                "is cut: its header claims " + std::to_string(header_bytes) + " bytes");
  }
  if (text.empty() || text[0] != '{') {
    throw Error(ErrorCode::kBadInput, path, "the safetensors header does not start with '{'", "byte 8");
  }
  SafetensorsHeader header;
  header.data_offset = 8 + header_bytes;
  const nlohmann::json object = ParseHeaderJson(AsText(text), path);
  for (const auto& [name, value] : object.items()) {
    if (name != kMetadataKey) {
      header.entries.push_back(ParseEntry(name, value, path));
      continue;
    }
    if (!value.is_object()) throw Error(ErrorCode::kBadInput, path, "__metadata__ is not an object");
    for (const auto& [key, text_value] : value.items()) {
      if (!text_value.is_string())
        throw Error(ErrorCode::kBadInput, path, "__metadata__." + key + " is not a string");
      header.metadata[key] = text_value.get<std::string>();
    }
  }
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != covered) {
      throw Error(ErrorCode::kBadInput, path,
                  "tensor '" + entry.name + "' " +
                      (entry.begin < covered ? "overlaps the one before it" : "follows a gap"),
                  "data byte " + std::to_string(covered));
    }
    covered = entry.end;
  }
  if (covered != parser.remaining()) {
    throw Error(ErrorCode::kBadInput, path,
                "its tensors span " + std::to_string(covered) + " bytes, the file holds " +
                    std::to_string(parser.remaining()),
                "", covered > parser.remaining() ? "the file was cut" : "");
  }
  return header;
}

void WriteSafetensors(ByteSink* sink, const std::vector<SafetensorsTensor>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object();  // sorts its keys
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    uint64_t size_bytes = SafetensorsElementBytes(tensor.dtype);
    for (const int64_t extent : tensor.shape) size_bytes *= static_cast<uint64_t>(extent);
    TRAINWRIGHT_CHECK(size_bytes == tensor.data.size() && !header.contains(tensor.name));
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + size_bytes}}};
    offset += size_bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::vector<uint8_t> size_field;
  AppendInteger<uint64_t>(&size_field, text.size());
  sink->Write(size_field);
  sink->Write(AsBytes(text));
  for (const SafetensorsTensor& tensor : tensors) sink->Write(tensor.data);
}

}  // namespace trainwright
