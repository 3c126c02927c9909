#include "lib/tok/sentencepiece_model.h"

#include <bit>
#include <optional>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kContent = 2, kFixed32 = 5 };

/// One field of a protobuf message: `varint` for kVarint and kFixed32, `content` for kContent.
struct Field {
  uint64_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t varint = 0;
  std::string_view content;

  /// A field of a known number and another wire type is an unknown one, which is passed over.
  bool Is(uint64_t wanted_number, Wire wanted_wire) const {
    return number == wanted_number && wire == wanted_wire;
  }
  /// protobuf reads an enum as 32 bits.
  int32_t enumerator() const { return static_cast<int32_t>(varint); }
};

/// Walks over the fields of one message.
class FieldReader {
 public:
  explicit FieldReader(std::string_view message) : parser_(AsBytes(message)) {}

  /// The next field; nullopt at the end and at the first malformed byte, which failed() tells apart.
  std::optional<Field> Next() {
    if (failed_ || parser_.remaining() == 0) return std::nullopt;
    const uint64_t tag = parser_.ReadVarint();
    Field field;
    field.number = tag >> 3;
    field.wire = static_cast<Wire>(tag & 7);
    switch (tag & 7) {
      case 0:
        field.varint = parser_.ReadVarint();
        break;
      case 1:
        parser_.ReadBytes(8);
        break;
      case 2:
        field.content = AsText(parser_.ReadBytes(parser_.ReadVarint()));
        break;
      case 5:
        field.varint = parser_.Read<uint32_t>();
        break;
      default:
        failed_ = true;
    }
    if (parser_.failed() || field.number == 0) failed_ = true;
    if (failed_) return std::nullopt;
    return field;
  }
  bool failed() const { return failed_; }

 private:
  ByteParser parser_;
  bool failed_ = false;
};

bool ReadPiece(std::string_view message, SentencePieceModel* model) {
  using PieceType = SentencePieceModel::PieceType;
  SentencePieceModel::Piece piece;
  FieldReader reader(message);
  while (const auto field = reader.Next()) {
    if (field->Is(1, Wire::kContent)) piece.text = field->content;
    if (field->Is(2, Wire::kFixed32))
      piece.score = std::bit_cast<float>(static_cast<uint32_t>(field->varint));
    // The library passes over types that it does not know.
    const int32_t type = field->enumerator();
    const bool known_type = type >= 1 && type <= static_cast<int32_t>(PieceType::kByte);
    if (field->Is(3, Wire::kVarint) && known_type) piece.type = static_cast<PieceType>(type);
  }
  if (reader.failed()) return false;
  if (piece.matches_text() && FindInvalidUtf8(piece.text) != std::string_view::npos) return false;
  model->pieces.push_back(std::move(piece));
  return true;
}

bool ReadTrainerSpec(std::string_view message, SentencePieceModel* model) {
  constexpr int32_t kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4;
  FieldReader reader(message);
  while (const auto field = reader.Next()) {
    const int32_t type = field->enumerator();
    const bool known_type = type == kUnigram || type == kBpe || type == kWord || type == kChar;
    if (field->Is(3, Wire::kVarint) && known_type) {
      model->is_bpe = type == kBpe;
      model->is_unigram = type == kUnigram;
    }
    if (field->Is(24, Wire::kVarint)) model->treat_whitespace_as_suffix = field->varint != 0;
    if (field->Is(35, Wire::kVarint)) model->byte_fallback = field->varint != 0;
  }
  return !reader.failed();
}

bool ReadNormalizerSpec(std::string_view message, SentencePieceModel* model) {
  FieldReader reader(message);
  while (const auto field = reader.Next()) {
    if (field->Is(2, Wire::kContent)) model->character_map = field->content;
    if (field->Is(3, Wire::kVarint)) model->add_dummy_prefix = field->varint != 0;
    if (field->Is(4, Wire::kVarint)) model->remove_extra_whitespaces = field->varint != 0;
    if (field->Is(5, Wire::kVarint)) model->escape_whitespaces = field->varint != 0;
  }
  return !reader.failed();
}

}  // namespace

std::optional<uint8_t> ByteOfPiece(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return std::nullopt;
  const size_t high = kDigits.find(text[3]), low = kDigits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<uint8_t>(16 * high + low);
}

bool ParseSentencePieceModel(std::string_view serialized, SentencePieceModel* model, std::string* problem) {
  *model = {};
  bool sound = true;
  FieldReader reader(serialized);
  while (const auto field = reader.Next()) {
    if (field->Is(1, Wire::kContent)) sound = ReadPiece(field->content, model);
    if (field->Is(2, Wire::kContent)) sound = ReadTrainerSpec(field->content, model);
    if (field->Is(3, Wire::kContent)) sound = ReadNormalizerSpec(field->content, model);
    if (!sound) break;
  }
  if (!sound || reader.failed()) {
    *problem = "is not a SentencePiece model: its protobuf is malformed or cut short";
    return false;
  }
  if (model->pieces.empty()) {
    *problem = "is not a SentencePiece model: it has no pieces";
    return false;
  }
  return true;
}

std::string WithoutDummyPrefix(std::string serialized) {
  // In protobuf a message field that comes again is merged into the first: normalizer_spec (3) with
  // add_dummy_prefix (3) = 0.
  constexpr char kNoDummyPrefix[] = {0x1A, 0x02, 0x18, 0x00};
  serialized.append(kNoDummyPrefix, sizeof(kNoDummyPrefix));
  return serialized;
}

}  // namespace trainwright
