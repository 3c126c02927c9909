#include "lib/score/gold_answers.h"

#include <cmath>

#include "lib/base/error.h"
#include "lib/documents/json_objects.h"
#include "lib/score/answer.h"

namespace trainwright {
namespace {

double GoldAnswer(const nlohmann::json& value, const JsonPlace& place) {
  double gold = std::nan("");
  if (value.is_number()) gold = value.get<double>();
  if (value.is_string()) gold = ParseAnswer(value.get<std::string>(), AnswerFormat::kAuto);
  if (!std::isfinite(gold)) throw place.Bad("its gold answer holds no number");
  return gold;
}

}  // namespace

std::string TrimmedPrompt(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

GoldAnswers ReadGoldAnswers(const std::string& path, std::string* sha256) {
  GoldAnswers answers;
  const std::string hash = ForEachJsonObject(path, [&](const nlohmann::json& object, const JsonPlace& place) {
    const std::string prompt = TrimmedPrompt(TextMemberOf(object, {"prompt", "question"}, place));
    const double gold = GoldAnswer(MemberOf(object, {"gold", "answer"}, place), place);
    const auto [known, is_new] = answers.try_emplace(prompt, gold);
    if (!is_new && known->second != gold) throw place.Bad("another answer to a question that came before");
  });
  if (answers.empty()) throw Error(ErrorCode::kBadInput, path, "holds no gold answers");
  if (sha256 != nullptr) *sha256 = hash;
  return answers;
}

}  // namespace trainwright
