#include "lib/tok/sentencepiece_model.h"

#include <bit>
#include <optional>
#include <utility>

#include "lib/base/bytes.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

/// One field of a protobuf message: `varint` for wire types 0 and 5, `content` for wire type 2.
struct Field {
  uint64_t number = 0;
  uint64_t varint = 0;
  std::string_view content;
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
    if (field->number == 1) piece.text = field->content;
    if (field->number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field->varint));
    // The library passes over types that it does not know.
    const bool known_type = field->varint >= 1 && field->varint <= static_cast<uint64_t>(PieceType::kByte);
    if (field->number == 3 && known_type) piece.type = static_cast<PieceType>(field->varint);
  }
  if (reader.failed()) return false;
  if (piece.matches_text() && FindInvalidUtf8(piece.text) != std::string_view::npos) return false;
  model->pieces.push_back(std::move(piece));
  return true;
}

bool ReadTrainerSpec(std::string_view message, SentencePieceModel* model) {
  constexpr uint64_t kBpe = 2;
  FieldReader reader(message);
  while (const auto field = reader.Next()) {
    if (field->number == 3) model->is_bpe = field->varint == kBpe;
    if (field->number == 24) model->treat_whitespace_as_suffix = field->varint != 0;
    if (field->number == 35) model->byte_fallback = field->varint != 0;
  }
  return !reader.failed();
}

bool ReadNormalizerSpec(std::string_view message, SentencePieceModel* model) {
  FieldReader reader(message);
  while (const auto field = reader.Next()) {
    if (field->number == 2) model->has_character_map = !field->content.empty();
    if (field->number == 3) model->add_dummy_prefix = field->varint != 0;
    if (field->number == 4) model->remove_extra_whitespaces = field->varint != 0;
    if (field->number == 5) model->escape_whitespaces = field->varint != 0;
  }
  return !reader.failed();
}

}  // namespace

bool ParseSentencePieceModel(std::string_view serialized, SentencePieceModel* model, std::string* problem) {
  *model = {};
  bool sound = true;
  FieldReader reader(serialized);
  while (const auto field = reader.Next()) {
    if (field->number == 1) sound = ReadPiece(field->content, model);
    if (field->number == 2) sound = ReadTrainerSpec(field->content, model);
    if (field->number == 3) sound = ReadNormalizerSpec(field->content, model);
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

}  // namespace trainwright
