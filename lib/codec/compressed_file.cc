#include "lib/codec/compressed_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/codec/element_type.h"
#include "lib/formats/bad_input.h"
#include "lib/formats/json_text.h"

namespace trainwright {
namespace {

constexpr char kVersion[] = "1";
constexpr char kVersionKey[] = "trainwright.compressed";
constexpr char kLevelKey[] = "trainwright.level";
constexpr char kWriterKey[] = "trainwright.writer";
constexpr char kHeaderKey[] = "trainwright.header";
constexpr char kBaseKey[] = "trainwright.base_xxh128";
constexpr char kSourceBytesKey[] = "trainwright.source_size_bytes";
constexpr char kSourceHashKey[] = "trainwright.source_xxh128";
constexpr char kOwnHashKey[] = "trainwright.xxh3";
constexpr size_t kOwnHashDigits = 16;

constexpr std::string_view kStreamMagic = "\x89TWC\r\n\x1a\n", kStreamEndMagic = "TWC END\n";
constexpr uint64_t kMaxStreamJsonBytes = uint64_t{1} << 30;

constexpr std::array kLevels = {std::pair{CodecLevel::kFast, "fast"},
                                std::pair{CodecLevel::kDefault, "default"},
                                std::pair{CodecLevel::kMax, "max"}};

using Fields = std::map<std::string, std::string>;

std::string FixedHex(uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(kOwnHashDigits, '0');
  for (size_t i = text.size(); i > 0; value >>= 4) text[--i] = kDigits[value & 15];
  return text;
}

Xxh128Digest DigestFrom(const std::string& text, const std::string& key, const std::string& path) {
  Xxh128Digest digest{};
  const auto nibble = [&](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw Error(ErrorCode::kBadInput, path, key + " is no hash");
  };
  if (text.size() != 2 * digest.size()) throw Error(ErrorCode::kBadInput, path, key + " is no hash");
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(nibble(text[2 * i]) << 4 | nibble(text[2 * i + 1]));
  return digest;
}

const std::string& Field(const Fields& fields, const std::string& key, const std::string& path) {
  const auto found = fields.find(key);
  if (found == fields.end())
    throw Error(ErrorCode::kBadInput, path, "is no compressed checkpoint: it lacks " + key);
  return found->second;
}

Fields HeadFields(const CompressedHead& head) {
  Fields fields = {{kVersionKey, kVersion},
                   {kLevelKey, NameOf(head.level)},
                   {kWriterKey, head.writer},
                   {kHeaderKey, head.source_header}};
  if (head.base_hash) fields[kBaseKey] = HexEncode(*head.base_hash);
  return fields;
}

CompressedHead HeadFrom(const Fields& fields, const std::string& path) {
  if (const std::string& version = Field(fields, kVersionKey, path); version != kVersion) {
    throw Error(ErrorCode::kBadInput, path, "version '" + version + "' of compressed checkpoints is unknown",
                "", "use a newer release");
  }
  CompressedHead head =
      HeadOf(JoinSafetensorsHead(Field(fields, kHeaderKey, path)), path + ": original header");
  const std::string& name = Field(fields, kLevelKey, path);
  const auto level =
      std::find_if(kLevels.begin(), kLevels.end(), [&](const auto& l) { return l.second == name; });
  if (level == kLevels.end()) throw Error(ErrorCode::kBadInput, path, "level '" + name + "' is unknown");
  head.level = level->first;
  head.writer = Field(fields, kWriterKey, path);
  if (const auto base = fields.find(kBaseKey); base != fields.end())
    head.base_hash = DigestFrom(base->second, kBaseKey, path);
  return head;
}

/// Where the value of a field begins in the text of a head of either form; npos: nowhere.
size_t PlaceOf(const std::string& key, std::string_view text) {
  // Inside a string the quotes would have backslashes, and nothing but a field of such a name is a string.
  const std::string mark = "\"" + key + "\":\"";
  const size_t at = text.find(mark);
  return at == std::string_view::npos ? at : at + mark.size();
}

/// Where the digits of a container's own hash are in its header.
size_t OwnHashPlace(std::string_view text, const std::string& path) {
  const size_t place = PlaceOf(kOwnHashKey, text);
  if (place == std::string_view::npos || text.size() - place < kOwnHashDigits)
    throw Error(ErrorCode::kBadInput, path,
                std::string("is no compressed checkpoint: it lacks ") + kOwnHashKey);
  return place;
}

std::string ContainerText(const CompressedHead& head, const CompressedTail& tail) {
  Fields fields = HeadFields(head);
  fields[kSourceBytesKey] = std::to_string(head.SourceBytes());
  fields[kSourceHashKey] = HexEncode(tail.source_hash);
  fields[kOwnHashKey] = std::string(kOwnHashDigits, '0');
  nlohmann::json json = {{"__metadata__", fields}};
  uint64_t offset = 0;
  for (size_t i = 0; i < head.source.entries.size(); ++i) {
    const uint64_t size = tail.coded_bytes[i];
    json[head.source.entries[i].name] = {
        {"dtype", "U8"}, {"shape", {size}}, {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  return CanonicalJson(json);
}

std::vector<uint8_t> StreamFooter(const CompressedHead& head, const CompressedTail& tail) {
  std::vector<uint8_t> footer;
  for (const uint64_t size : tail.coded_bytes) AppendInteger(&footer, size);
  AppendInteger(&footer, head.SourceBytes());
  AppendBytes(&footer, tail.source_hash);
  return footer;
}

}  // namespace

uint64_t CompressedHead::Identity(const std::string& tensor_name) const {
  return Xxh3(AsBytes(tensor_name), source_header_hash);
}

std::vector<uint8_t> CompressedHead::SourceHead() const {
  return JoinSafetensorsHead(source_header);
}

CompressedHead HeadOf(ByteSpan source_head, const std::string& path) {
  CompressedHead head;
  head.source = ParseSafetensorsHead(source_head, path);
  head.source_header = AsText(source_head.subspan(8, head.source.data_offset - 8));
  head.source_header_hash = Xxh3(AsBytes(head.source_header));
  return head;
}

std::string NameOf(CodecLevel level) {
  for (const auto& [known, name] : kLevels) {
    if (known == level) return name;
  }
  return "";
}

uint64_t MostPrologueBytes(const SafetensorsEntry& entry) {
  return (uint64_t{1} << 20) + 2 * (entry.end - entry.begin);
}

std::optional<FoundHead> FindHead(ByteSpan bytes, const std::string& path) {
  const std::string_view text = AsText(bytes);
  const size_t begin = PlaceOf(kHeaderKey, text);
  if (begin == std::string_view::npos) return std::nullopt;
  size_t end = begin;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size()) return std::nullopt;
  const nlohmann::json header = JsonOf(text.substr(begin - 1, end - begin + 2));
  if (!header.is_string()) return std::nullopt;
  FoundHead found{.head = {}, .end = end};
  try {
    found.head = HeadOf(JoinSafetensorsHead(header.get<std::string>()), path + ": original header");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
    return std::nullopt;
  }
  const size_t base = PlaceOf(kBaseKey, text.substr(0, begin));
  if (base == std::string_view::npos) return found;
  try {
    const std::string digits(text.substr(base, 2 * sizeof(Xxh128Digest)));
    found.head.base_hash = DigestFrom(digits, kBaseKey, path);
  } catch (const Error&) {  // a tensor knows its own part of the base
  }
  return found;
}

uint64_t ContainerHeadBytes(const CompressedHead& head) {
  CompressedTail largest;
  for (const SafetensorsEntry& entry : head.source.entries) {
    const ElementType type = ElementTypeOf(entry.dtype);
    largest.coded_bytes.push_back(2 * CodedTensorBound(type, (entry.end - entry.begin) / ElementBytes(type)));
  }
  const uint64_t size = (ContainerText(head, largest).size() + 7) / 8 * 8;
  if (size > kMaxSafetensorsHeaderBytes) {
    throw Error(ErrorCode::kUsage, "--to safetensors",
                "cannot hold this file: with the original header inside, its own would exceed the " +
                    std::to_string(kMaxSafetensorsHeaderBytes) + " bytes that the format allows",
                "", "--to stream has no such limit");
  }
  return 8 + size;
}

std::vector<uint8_t> EncodeContainerHead(const CompressedHead& head, const CompressedTail& tail) {
  std::string text = ContainerText(head, tail);
  const uint64_t size = ContainerHeadBytes(head) - 8;
  TRAINWRIGHT_CHECK(text.size() <= size);
  text.resize(size, ' ');
  const size_t place = OwnHashPlace(text, "header");
  text.replace(place, kOwnHashDigits, FixedHex(Xxh3(AsBytes(text))));
  return JoinSafetensorsHead(text);
}

bool IsContainer(const SafetensorsHeader& header) {
  return header.metadata.contains(kVersionKey);
}

void ParseContainerHead(ByteSpan bytes, const std::string& path, CompressedHead* head, CompressedTail* tail) {
  const SafetensorsHeader own = ParseSafetensorsHead(bytes, path);
  std::string text(AsText(bytes.subspan(8, own.data_offset - 8)));
  const size_t place = OwnHashPlace(text, path);
  const std::string stored = text.substr(place, kOwnHashDigits);
  text.replace(place, kOwnHashDigits, kOwnHashDigits, '0');
  if (stored != FixedHex(Xxh3(AsBytes(text))))
    throw BadInputAt(8, path, "the header of the compressed checkpoint is corrupt: its hash differs");
  *head = HeadFrom(own.metadata, path);
  if (Field(own.metadata, kSourceBytesKey, path) != std::to_string(head->SourceBytes()))
    throw Error(ErrorCode::kBadInput, path,
                "contradicts itself: the size of the original is not that of its header");
  *tail = {};
  tail->source_hash = DigestFrom(Field(own.metadata, kSourceHashKey, path), kSourceHashKey, path);
  const auto refuse = [&](const std::string& why) { return Error(ErrorCode::kBadInput, path, why); };
  if (own.entries.size() != head->source.entries.size())
    throw refuse("contradicts itself: it has another number of tensors than its original");
  for (size_t i = 0; i < own.entries.size(); ++i) {
    const SafetensorsEntry& entry = own.entries[i];
    if (entry.name != head->source.entries[i].name || entry.dtype != "U8" || entry.shape.size() != 1)
      throw refuse("contradicts itself: tensor '" + entry.name + "' is not one of its original");
    tail->coded_bytes.push_back(entry.end - entry.begin);
  }
}

bool IsStream(ByteSpan prefix) {
  return prefix.size() >= kStreamMagic.size() && AsText(prefix.first(kStreamMagic.size())) == kStreamMagic;
}

std::vector<uint8_t> EncodeStreamHead(const CompressedHead& head) {
  const std::string text = CanonicalJson(HeadFields(head));
  const std::vector<uint8_t> sized = JoinSafetensorsHead(text);
  std::vector<uint8_t> bytes(kStreamMagic.size() + sized.size());
  std::copy(kStreamMagic.begin(), kStreamMagic.end(), bytes.begin());
  std::copy(sized.begin(), sized.end(), bytes.begin() + kStreamMagic.size());
  AppendInteger(&bytes, Xxh3(bytes));
  return bytes;
}

uint64_t StreamHeadBytes(ByteSpan prefix, const std::string& path) {
  if (prefix.size() < kStreamPrefixBytes) throw CutShortAt(prefix.size(), path, "compressed stream");
  ByteParser parser(prefix.subspan(kStreamMagic.size()));
  const auto json_bytes = parser.Read<uint64_t>();
  if (json_bytes > kMaxStreamJsonBytes) throw BadInputAt(8, path, "the head of the stream is too large");
  return kStreamPrefixBytes + json_bytes + sizeof(uint64_t);
}

CompressedHead ParseStreamHead(ByteSpan bytes, const std::string& path) {
  const uint64_t size = StreamHeadBytes(bytes, path);
  if (!IsStream(bytes)) throw BadInputAt(0, path, "is no compressed stream");
  if (bytes.size() < size) throw CutShortAt(bytes.size(), path, "compressed stream");
  const ByteSpan hashed = bytes.first(size - sizeof(uint64_t));
  if (ByteParser(bytes.subspan(hashed.size())).Read<uint64_t>() != Xxh3(hashed))
    throw BadInputAt(hashed.size(), path, "the head of the stream is corrupt: its hash differs");
  const nlohmann::json json = ParseJson(AsText(hashed.subspan(kStreamPrefixBytes)), path);
  Fields fields;
  if (!json.is_object())
    throw BadInputAt(kStreamPrefixBytes, path, "the head of the stream is no JSON object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) throw BadInputAt(kStreamPrefixBytes, path, key + " is no string");
    fields[key] = value.get<std::string>();
  }
  return HeadFrom(fields, path);
}

std::vector<uint8_t> EncodeStreamEnd(const CompressedHead& head, const CompressedTail& tail) {
  std::vector<uint8_t> bytes = StreamFooter(head, tail);
  AppendInteger(&bytes, static_cast<uint64_t>(bytes.size()));
  AppendInteger(&bytes, Xxh3(bytes, head.source_header_hash));
  AppendBytes(&bytes, AsBytes(kStreamEndMagic));
  return bytes;
}

uint64_t StreamEndBytes(const CompressedHead& head) {
  return 8 * head.source.entries.size() + 8 + sizeof(Xxh128Digest) + kStreamTrailerBytes;
}

CompressedTail ParseStreamEnd(ByteSpan bytes, const CompressedHead& head, const std::string& path,
                              uint64_t offset) {
  if (bytes.size() < StreamEndBytes(head)) throw CutShortAt(offset + bytes.size(), path, "compressed stream");
  const ByteSpan hashed = bytes.first(StreamEndBytes(head) - 2 * sizeof(uint64_t));
  const ByteSpan footer = hashed.first(hashed.size() - sizeof(uint64_t));
  ByteParser trailer(bytes.subspan(footer.size()));
  const auto footer_bytes = trailer.Read<uint64_t>(), hash = trailer.Read<uint64_t>();
  if (AsText(trailer.ReadBytes(kStreamEndMagic.size())) != kStreamEndMagic)
    throw CutShortAt(offset + bytes.size(), path, "compressed stream");
  if (footer_bytes != footer.size() || hash != Xxh3(hashed, head.source_header_hash))
    throw BadInputAt(offset, path, "the footer of the stream is corrupt: its hash differs");
  CompressedTail tail;
  ByteParser parser(footer);
  for (size_t i = 0; i < head.source.entries.size(); ++i) tail.coded_bytes.push_back(parser.Read<uint64_t>());
  if (parser.Read<uint64_t>() != head.SourceBytes())
    throw BadInputAt(offset, path, "the footer contradicts the size of the original");
  const ByteSpan digest = parser.ReadBytes(sizeof(Xxh128Digest));
  std::copy(digest.begin(), digest.end(), tail.source_hash.begin());
  return tail;
}

}  // namespace trainwright
