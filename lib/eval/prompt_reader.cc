#include "lib/eval/prompt_reader.h"

#include <utility>

#include "lib/base/error.h"

namespace trainwright {

PromptReader::PromptReader(std::optional<std::string> prompt, const std::string& path)
    : prompt_(std::move(prompt)) {
  constexpr uint64_t kLongestLineBytes = uint64_t{1} << 30;
  if (!prompt_) reader_.emplace(std::vector<DocumentInput>{{path, InputFormat::kJsonl}}, kLongestLineBytes);
}

std::optional<PromptLine> PromptReader::Next() {
  if (!reader_) {
    if (!prompt_) return std::nullopt;
    PromptLine line{.text = std::move(*prompt_), .id = {}, .place = {}};
    prompt_.reset();
    return line;
  }
  while (next_ == batch_.records.size()) {
    next_ = 0;
    if (!reader_->Next(&batch_)) {
      batch_.records.clear();
      return std::nullopt;
    }
  }
  PromptLine line;
  line.place = "line " + std::to_string(batch_.first_record + next_);
  const auto refuse = [&](const std::string& problem) {
    return Error(ErrorCode::kBadInput, batch_.source, problem, line.place,
                 "a line is an object like {\"prompt\": \"Once upon a time\"}");
  };
  const Record& record = batch_.records[next_++];
  if (record.too_long) throw refuse("is longer than 1 GiB");
  auto object =
      nlohmann::ordered_json::parse(batch_.bytes.begin() + static_cast<int64_t>(record.begin),
                                    batch_.bytes.begin() + static_cast<int64_t>(record.end), nullptr,
                                    /*allow_exceptions=*/false);
  if (!object.is_object()) throw refuse("is no JSON object");
  const auto prompt = object.find("prompt");
  if (prompt == object.end() || !prompt->is_string()) throw refuse("has no string \"prompt\"");
  line.text = prompt->get<std::string>();
  if (const auto id = object.find("id"); id != object.end()) line.id = *id;
  return line;
}

}  // namespace trainwright
