#include "lib/formats/file_header.h"

#include <algorithm>

#include "lib/base/checksum.h"
#include "lib/base/error.h"
#include "lib/formats/bad_input.h"

namespace trainwright {
namespace {

constexpr uint16_t kMajorVersion = 1;
// Files that need a feature which version 1.2 lacks.
constexpr uint16_t kMinorVersionOfFlags = 3;
constexpr uint16_t kMinorVersionOfOwnKinds = 4;
constexpr size_t kFixedBytes = 104;
constexpr size_t kHashBytes = 8;
constexpr uint32_t kMaxKindBytes = 64;
constexpr uint64_t kMaxExtensionBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxHeaderBytes =
    kMaxTokenizerModelBytes + kMaxProvenanceBytes + kMaxExtensionBytes + (1 << 20);

/// Files of lm records are those of version 1.0 to the last bit; 1.1 added sft records, 1.2 contrastive ones,
/// 1.3 required flags, 1.4 an objective's own kinds.
uint16_t MinorVersionOf(const FileHeader& header) {
  if (IsOwnKind(header.record_kind)) return kMinorVersionOfOwnKinds;
  return header.required_flags != 0 ? kMinorVersionOfFlags : static_cast<uint16_t>(header.record_kind);
}

bool IsIdOrNone(uint32_t id, uint32_t vocab_size) {
  return id < vocab_size || id == kNoId;
}

}  // namespace

std::vector<uint8_t> EncodeFileHeader(const FileHeaderFormat& format, const FileHeader& header) {
  const TokenizerIdentity& tokenizer = header.tokenizer;
  TRAINWRIGHT_CHECK(tokenizer.vocab_size > 0 && tokenizer.kind.size() <= kMaxKindBytes);
  TRAINWRIGHT_CHECK(IsKnownKind(header.record_kind));
  TRAINWRIGHT_CHECK(header.settings.size() == format.settings_bytes);
  TRAINWRIGHT_CHECK(header.provenance_json.size() <= kMaxProvenanceBytes);
  TRAINWRIGHT_CHECK((header.required_flags & ~format.required_flags) == 0);
  TRAINWRIGHT_CHECK(header.required_flags != 0 || header.extension.empty());
  TRAINWRIGHT_CHECK(header.extension.size() <= kMaxExtensionBytes);
  if (tokenizer.model.size() > kMaxTokenizerModelBytes) {
    throw Error(ErrorCode::kBadInput, "tokenizer model", "is larger than 256 MiB");
  }
  TRAINWRIGHT_CHECK(tokenizer.model.empty() || Sha256Of(AsBytes(tokenizer.model)) == tokenizer.sha256);

  std::vector<uint8_t> out;
  const size_t size = kFixedBytes + header.settings.size() + tokenizer.kind.size() +
                      header.provenance_json.size() + tokenizer.model.size() + header.extension.size() +
                      kHashBytes;
  out.reserve(size);
  AppendBytes(&out, format.magic);
  AppendInteger(&out, kMajorVersion);
  AppendInteger(&out, MinorVersionOf(header));
  AppendInteger(&out, static_cast<uint32_t>(size));
  AppendInteger(&out, header.required_flags);
  AppendInteger(&out, uint64_t{0});  // optional flags
  for (const uint32_t value :
       {tokenizer.vocab_size, tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id, tokenizer.unk_id}) {
    AppendInteger(&out, value);
  }
  AppendInteger(&out, static_cast<uint8_t>(header.record_kind));
  AppendInteger(&out, static_cast<uint8_t>(TokenWidth(tokenizer.vocab_size)));
  AppendInteger(&out, static_cast<uint16_t>(header.settings.size()));
  AppendBytes(&out, tokenizer.sha256);
  AppendInteger(&out, static_cast<uint32_t>(tokenizer.kind.size()));
  AppendInteger(&out, static_cast<uint32_t>(header.provenance_json.size()));
  AppendInteger(&out, static_cast<uint32_t>(tokenizer.model.size()));
  AppendInteger(&out, static_cast<uint32_t>(header.extension.size()));
  AppendBytes(&out, header.settings);
  AppendBytes(&out, AsBytes(tokenizer.kind));
  AppendBytes(&out, AsBytes(header.provenance_json));
  AppendBytes(&out, AsBytes(tokenizer.model));
  AppendBytes(&out, header.extension);
  AppendInteger(&out, Xxh3(out));
  return out;
}

uint64_t FileHeaderSize(const FileHeaderFormat& format, ByteSpan prefix, const std::string& object,
                        uint64_t offset) {
  const std::string name = format.name;
  if (prefix.empty()) {
    throw BadInputAt(offset, object, "holds no " + name + ": it is empty",
                     "the program that should write it may have failed; look at its messages");
  }
  const size_t seen = std::min(prefix.size(), format.magic.size());
  if (!std::equal(prefix.begin(), prefix.begin() + static_cast<ptrdiff_t>(seen), format.magic.begin())) {
    throw BadInputAt(offset, object, "is not a " + name, format.hint);
  }
  if (prefix.size() < kFileHeaderPrefixBytes) throw CutShortAt(offset + prefix.size(), object, name);
  ByteParser parser(prefix.subspan(format.magic.size()));
  const auto major = parser.Read<uint16_t>();
  const auto minor = parser.Read<uint16_t>();
  const auto size = parser.Read<uint32_t>();
  if (major != kMajorVersion) {
    throw BadInputAt(offset + 8, object,
                     "is a " + name + " of version " + std::to_string(major) + "." + std::to_string(minor) +
                         "; this program reads version " + std::to_string(kMajorVersion),
                     "read it with the release that wrote it, or a newer one");
  }
  if (size < kFixedBytes + kHashBytes || size > kMaxHeaderBytes) {
    throw BadInputAt(offset + 12, object,
                     "the header is corrupt: it claims " + std::to_string(size) + " bytes");
  }
  return size;
}

FileHeader DecodeFileHeader(const FileHeaderFormat& format, ByteSpan bytes, const std::string& object,
                            uint64_t offset) {
  const auto corrupt = [&](const std::string& why) {
    return BadInputAt(offset, object, "the header is corrupt: " + why);
  };
  if (bytes.size() < kFixedBytes + kHashBytes) throw corrupt("it is too short");
  const ByteSpan hashed = bytes.first(bytes.size() - kHashBytes);
  if (ByteParser(bytes.last(kHashBytes)).Read<uint64_t>() != Xxh3(hashed))
    throw corrupt("its hash does not match");

  ByteParser parser(hashed);
  parser.ReadBytes(kFileHeaderPrefixBytes);
  const auto required_flags = parser.Read<uint64_t>();
  if ((required_flags & ~format.required_flags) != 0) {
    throw BadInputAt(offset + 16, object,
                     std::string("needs a feature of ") + format.name + "s that this program lacks",
                     "read it with the release that wrote it, or a newer one");
  }
  parser.Read<uint64_t>();  // optional flags: safe to ignore by definition
  FileHeader header;
  TokenizerIdentity& tokenizer = header.tokenizer;
  for (uint32_t* value :
       {&tokenizer.vocab_size, &tokenizer.bos_id, &tokenizer.eos_id, &tokenizer.pad_id, &tokenizer.unk_id}) {
    *value = parser.Read<uint32_t>();
  }
  const auto record_kind = parser.Read<uint8_t>();
  const auto token_width = parser.Read<uint8_t>();
  const auto settings_bytes = parser.Read<uint16_t>();
  const ByteSpan sha256 = parser.ReadBytes(tokenizer.sha256.size());
  const auto kind_bytes = parser.Read<uint32_t>();
  const auto provenance_bytes = parser.Read<uint32_t>();
  const auto model_bytes = parser.Read<uint32_t>();
  const auto extension_bytes = parser.Read<uint32_t>();
  const ByteSpan settings = parser.ReadBytes(settings_bytes);
  const ByteSpan kind = parser.ReadBytes(kind_bytes);
  const ByteSpan provenance = parser.ReadBytes(provenance_bytes);
  const ByteSpan model = parser.ReadBytes(model_bytes);
  const ByteSpan extension = parser.ReadBytes(extension_bytes);
  if (parser.failed()) throw corrupt("its parts do not fit into it");
  if (tokenizer.vocab_size == 0) throw corrupt("the vocabulary is empty");
  for (const uint32_t id : {tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id, tokenizer.unk_id}) {
    if (!IsIdOrNone(id, tokenizer.vocab_size)) throw corrupt("a special id lies outside the vocabulary");
  }
  if (token_width != TokenWidth(tokenizer.vocab_size))
    throw corrupt("token width and vocabulary size disagree");
  if (!IsKnownKind(RecordKind{record_kind})) {
    throw BadInputAt(offset + 52, object,
                     "holds records of kind " + std::to_string(record_kind) +
                         "; this program reads kinds 0 (lm), 1 (sft), 2 (contrastive) and from 128 on"
                         " (an objective's own)");
  }
  if (settings_bytes < format.settings_bytes) throw corrupt("its settings are too short");
  if (kind_bytes > kMaxKindBytes || provenance_bytes > kMaxProvenanceBytes ||
      model_bytes > kMaxTokenizerModelBytes || extension_bytes > kMaxExtensionBytes) {
    throw corrupt("a part is larger than its limit");
  }
  if (required_flags == 0 && extension_bytes > 0) throw corrupt("it has an extension that nothing needs");
  std::copy(sha256.begin(), sha256.end(), tokenizer.sha256.begin());
  header.required_flags = required_flags;
  header.extension.assign(extension.begin(), extension.end());
  header.settings.assign(settings.begin(), settings.end());
  header.record_kind = static_cast<RecordKind>(record_kind);
  tokenizer.kind = AsText(kind);
  header.provenance_json = AsText(provenance);
  tokenizer.model = AsText(model);
  if (!model.empty() && Sha256Of(model) != tokenizer.sha256)
    throw corrupt("the tokenizer model is not what its hash says");
  return header;
}

}  // namespace trainwright
