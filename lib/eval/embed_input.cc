#include "lib/eval/embed_input.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/documents/document_reader.h"
#include "lib/documents/json_objects.h"
#include "lib/formats/json_text.h"
#include "lib/retrieval/corpus.h"
#include "lib/tok/utf8.h"

namespace trainwright {
namespace {

InputFormat EmbedFormatOf(const std::string& path, const std::string& format) {
  const InputFormat parsed = format == "auto" ? GuessInputFormat(path, false) : ParseInputFormat(format);
  if (parsed == InputFormat::kLines || parsed == InputFormat::kJsonl) return parsed;
  throw Error(ErrorCode::kUsage, path, "is to be read as " + std::string(NameOf(parsed)), "",
              parsed == InputFormat::kParquet
                  ? kParquetHint
                  : "embed reads lines and JSON lines: give one of them by --input-format");
}

}  // namespace

EmbedInput::EmbedInput(const std::string& path, const std::string& format, EmbedDefaults defaults)
    : path_(path),
      format_(EmbedFormatOf(path, format)),
      is_guessed_(format == "auto"),
      defaults_(std::move(defaults)),
      reader_(path, format_) {
  reader_.HashStoredBytes();
}

void EmbedInput::WarnOfJson(std::string_view record) const {
  if (!is_guessed_ || !(record.starts_with("{\"") || record.starts_with("{ \""))) return;
  LogCommonWarning(reader_.place().file + ": looks like JSON lines but is read as plain lines",
                   "--input-format jsonl, or a name that ends in .jsonl, says otherwise");
}

void EmbedInput::ReadObject(std::string_view record, EmbedText* text) const {
  const auto object = JsonOf(record);
  if (!object.is_object()) throw text->place.Bad("is no JSON object");
  text->text.text = TitledTextOf(object, text->place);
  if (const auto instruction = object.find("instruction"); instruction != object.end()) {
    text->text.instruction = TextMemberOf(object, {"instruction"}, text->place);
  }
  if (const auto role = object.find("role"); role != object.end()) {
    const bool is_query = *role == "query";
    if (!is_query && *role != "passage") throw text->place.Bad("its role is neither query nor passage");
    text->text.role = is_query ? TextRole::kQuery : TextRole::kPositive;
  }
  if (object.contains("_id") || object.contains("id")) text->id = IdOf(object, text->place);
}

bool EmbedInput::Next(EmbedText* text) {
  std::string_view record;
  do {
    const std::optional<std::string_view> next = reader_.Next();
    if (!next) return false;
    record = *next;
    consumed_.Update(AsBytes(record));
    consumed_.Update(AsBytes("\n"));
    // A blank line is a text of lines, and nothing at all of JSON lines.
  } while (format_ == InputFormat::kJsonl && record.find_first_not_of(" \t\r") == std::string_view::npos);
  text->place = reader_.place();
  text->id.reset();
  text->text = {defaults_.instruction, "", defaults_.role};
  if (format_ == InputFormat::kJsonl) {
    ReadObject(record, text);
  } else {
    if (FindInvalidUtf8(record) != std::string_view::npos) throw text->place.Bad("is not valid UTF-8");
    if (texts_ == 0) WarnOfJson(record);
    text->text.text = record;
  }
  if (texts_++ == 0) has_ids_ = text->id.has_value();
  if (text->id.has_value() != has_ids_) {
    throw text->place.Bad(has_ids_ ? "has no id, and the texts before it have"
                                   : "has an id, and the texts before it have none");
  }
  if (text->id) id_hashes_.push_back(Xxh3(AsBytes(*text->id)));
  return true;
}

uint64_t EmbedInput::CountRepeatedIds() const {
  std::vector<uint64_t> hashes = id_hashes_;
  std::sort(hashes.begin(), hashes.end());
  return static_cast<uint64_t>(hashes.end() - std::unique(hashes.begin(), hashes.end()));
}

nlohmann::ordered_json EmbedInput::identity() const {
  return {{"path", path_}, {"sha256", reader_.stored_sha256()}};
}

}  // namespace trainwright
