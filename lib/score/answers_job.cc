#include "lib/score/answers_job.h"

#include <cmath>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/signals.h"
#include "lib/data/document_reader.h"
#include "lib/data/document_text.h"

namespace trainwright {
namespace {

constexpr uint64_t kMaxLineBytes = uint64_t{1} << 30;

/// Where a line is, for messages.
struct Place {
  std::string file, line;
  Error Bad(const std::string& problem, const std::string& hint = "") const {
    return Error(ErrorCode::kBadInput, file, problem, line, hint);
  }
};

/// Calls `use` with every line that is not blank.
void ForEachObject(const std::string& path,
                   const std::function<void(const nlohmann::json&, const Place&)>& use) {
  DocumentReader reader({{path, InputFormat::kJsonl}}, kMaxLineBytes);
  for (RecordBatch batch; reader.Next(&batch);) {
    ThrowIfStopped();
    for (size_t i = 0; i < batch.records.size(); ++i) {
      const Place place = {batch.source, "line " + std::to_string(batch.first_record + i)};
      if (batch.records[i].too_long) throw place.Bad("is longer than 1 GiB");
      const std::string_view line = RawRecord(batch, i);
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!object.is_object()) throw place.Bad("is no JSON object");
      use(object, place);
    }
  }
}

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

const nlohmann::json& Member(const nlohmann::json& object, std::initializer_list<const char*> names,
                             const Place& place) {
  for (const char* name : names) {
    if (const auto found = object.find(name); found != object.end()) return *found;
  }
  std::string wanted;
  for (const char* name : names) wanted += std::string(wanted.empty() ? "\"" : " or \"") + name + "\"";
  throw place.Bad("has no " + wanted);
}

std::string TextMember(const nlohmann::json& object, std::initializer_list<const char*> names,
                       const Place& place) {
  const nlohmann::json& member = Member(object, names, place);
  if (!member.is_string()) throw place.Bad(std::string("its ") + *names.begin() + " is not a string");
  return member.get<std::string>();
}

double GoldAnswer(const nlohmann::json& value, const Place& place) {
  double gold = std::nan("");
  if (value.is_number()) gold = value.get<double>();
  if (value.is_string()) gold = ParseAnswer(value.get<std::string>(), AnswerFormat::kAuto);
  if (!std::isfinite(gold)) throw place.Bad("its gold answer holds no number");
  return gold;
}

struct Question {
  double gold = 0;
  std::map<int64_t, double> answers;  ///< by sample
};

/// Questions by their trimmed prompts.
using Questions = std::unordered_map<std::string, Question>;

Questions ReadGold(const std::string& path) {
  Questions questions;
  ForEachObject(path, [&](const nlohmann::json& object, const Place& place) {
    const std::string prompt = Trimmed(TextMember(object, {"prompt", "question"}, place));
    const double gold = GoldAnswer(Member(object, {"gold", "answer"}, place), place);
    const auto [known, is_new] = questions.try_emplace(prompt, Question{gold, {}});
    if (!is_new && known->second.gold != gold)
      throw place.Bad("another answer to a question that came before");
  });
  if (questions.empty()) throw Error(ErrorCode::kBadInput, path, "holds no gold answers");
  return questions;
}

uint64_t ReadSamples(const std::string& path, AnswerFormat format, Questions* questions) {
  uint64_t samples = 0;
  ForEachObject(path, [&](const nlohmann::json& object, const Place& place) {
    const auto found = questions->find(Trimmed(TextMember(object, {"prompt"}, place)));
    if (found == questions->end()) {
      throw place.Bad("its prompt is no question of the gold file",
                      "give the gold answers of these prompts by --gold");
    }
    int64_t number = 0;
    if (const auto sample = object.find("sample"); sample != object.end()) {
      if (!sample->is_number_integer()) throw place.Bad("its sample is not a whole number");
      number = sample->get<int64_t>();
    }
    const double answer = ParseAnswer(TextMember(object, {"text"}, place), format);
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
  Questions questions = ReadGold(options.gold);
  const uint64_t samples = ReadSamples(options.samples, options.format, &questions);
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
  return json;
}

}  // namespace trainwright
