#include "lib/score/answers_job.h"

#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/log.h"
#include "lib/documents/json_objects.h"
#include "lib/score/gold_answers.h"

namespace trainwright {
namespace {

struct Question {
  double gold = 0;
  std::map<int64_t, double> answers;  ///< by sample
};

/// Questions by their trimmed prompts.
using Questions = std::unordered_map<std::string, Question>;

Questions QuestionsOf(const GoldAnswers& gold) {
  Questions questions;
  for (const auto& [prompt, answer] : gold) questions.emplace(prompt, Question{answer, {}});
  return questions;
}

uint64_t ReadSamples(const std::string& path, AnswerFormat format, Questions* questions,
                     std::string* sha256) {
  uint64_t samples = 0;
  *sha256 = ForEachJsonObject(path, [&](const nlohmann::json& object, const JsonPlace& place) {
    const auto found = questions->find(TrimmedPrompt(TextMemberOf(object, {"prompt"}, place)));
    if (found == questions->end()) {
      throw place.Bad("its prompt is no question of the gold file",
                      "give the gold answers of these prompts by --gold");
    }
    int64_t number = 0;
    if (const auto sample = object.find("sample"); sample != object.end()) {
      if (!sample->is_number_integer()) throw place.Bad("its sample is not a whole number");
      number = sample->get<int64_t>();
    }
    const double answer = ParseAnswer(TextMemberOf(object, {"text"}, place), format);
    if (!found->second.answers.emplace(number, answer).second) {
      throw place.Bad("sample " + std::to_string(number) + " of this prompt came before");
    }
    ++samples;
  });
  return samples;
}

void AddShare(const std::string& name, uint64_t successes, uint64_t n, nlohmann::ordered_json* json) {
  const WilsonInterval interval = WilsonIntervalOf(successes, n);
  (*json)[name] = static_cast<double>(successes) / static_cast<double>(n);
  (*json)[name + "_interval"] = {interval.low, interval.high};
}

}  // namespace

nlohmann::ordered_json RunAnswers(const AnswersJobOptions& options) {
  std::string gold_sha256, samples_sha256;
  Questions questions = QuestionsOf(ReadGoldAnswers(options.gold, &gold_sha256));
  const uint64_t samples = ReadSamples(options.samples, options.format, &questions, &samples_sha256);
  uint64_t valid = 0, strict = 0, exact = 0, answered = 0, missing = 0, any_valid = 0, valid_samples = 0,
           answered_samples = 0;
  for (const auto& [prompt, question] : questions) {
    if (question.answers.empty()) {
      ++missing;
      continue;
    }
    const double first = question.answers.begin()->second;
    answered += std::isfinite(first) ? 1 : 0;
    valid += IsValidAnswer(first, question.gold) ? 1 : 0;
    strict += IsStrictlyValidAnswer(first, question.gold) ? 1 : 0;
    exact += first == question.gold ? 1 : 0;
    uint64_t valid_here = 0;
    for (const auto& [number, answer] : question.answers) {
      valid_here += IsValidAnswer(answer, question.gold) ? 1 : 0;
      answered_samples += std::isfinite(answer) ? 1 : 0;
    }
    any_valid += valid_here > 0 ? 1 : 0;
    valid_samples += valid_here;
  }
  if (missing > 0) {
    LogWarning(std::to_string(missing) + " of " + std::to_string(questions.size()) +
               " gold questions have no sample and count as not answered");
  }
  const uint64_t n = questions.size();
  nlohmann::ordered_json json = {{"metric", "answers"}, {"n", n}};
  AddShare("accuracy", valid, n, &json);
  AddShare("strict_accuracy", strict, n, &json);
  AddShare("exact_accuracy", exact, n, &json);
  AddShare("answer_rate", answered, n, &json);
  json["missing"] = missing;
  json["samples"] = samples;
  json["sample_accuracy"] = nullptr;
  json["sample_answer_rate"] = nullptr;
  if (samples > 0) {
    json["sample_accuracy"] = static_cast<double>(valid_samples) / static_cast<double>(samples);
    json["sample_answer_rate"] = static_cast<double>(answered_samples) / static_cast<double>(samples);
  }
  json["any_valid"] = static_cast<double>(any_valid) / static_cast<double>(n);
  json["answer_format"] = NameOf(options.format);
  json["data"] = {{"path", options.samples}, {"sha256", samples_sha256}};
  json["gold"] = {{"path", options.gold}, {"sha256", gold_sha256}};
  return json;
}

}  // namespace trainwright
