#include "lib/tok/sentencepiece_model.h"

#include <optional>

#include "lib/base/bytes.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

/// One field of a protobuf message: `varint` for wire type 0, `content` for wire type 2.
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
        parser_.ReadBytes(4);
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
  constexpr uint64_t kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5;
  std::string_view piece;
  uint64_t type = kNormal;
  FieldReader reader(message);
  while (const auto field = reader.Next()) {
    if (field->number == 1) piece = field->content;
    if (field->number == 3) type = field->varint;
  }
  if (reader.failed()) return false;
  if (type == kControl || type == kUserDefined) {
    model->named_pieces.push_back(
        {std::string(piece), static_cast<uint32_t>(model->piece_count), type == kUserDefined});
  }
  ++model->piece_count;
  // The library looks up merges among these three kinds; byte, control and unknown pieces never match text.
  if (type != kNormal && type != kUserDefined && type != kUnused) return true;
  Utf8Character previous = DecodeUtf8(piece);
  if (previous.size_bytes == 0) return piece.empty();
  for (size_t offset = previous.size_bytes; offset < piece.size();) {
    const Utf8Character next = DecodeUtf8(piece.substr(offset));
    if (next.size_bytes == 0) return false;
    model->inner_bigrams.insert(uint64_t{previous.code_point} << 32 | next.code_point);
    previous = next;
    offset += next.size_bytes;
  }
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
  if (model->piece_count == 0) {
    *problem = "is not a SentencePiece model: it has no pieces";
    return false;
  }
  return true;
}

}  // namespace trainwright
