/// The whole of `evaluate --metric answers`: generated samples + gold answers -> one JSON object.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/score/answer.h"

namespace trainwright {

struct AnswersJobOptions {
  std::string samples;  ///< JSON lines {"prompt", "text", "sample", ...} as `generate` writes them; "-":
                        ///< standard input
  std::string
      gold;  ///< JSON lines {"prompt" or "question", "gold" or "answer"}: a number, or text that holds one
  AnswerFormat format = AnswerFormat::kAuto;
};

/// Scores. A sample belongs to the gold question that its prompt is, white space at both ends apart. The
/// shares are those of the gold questions' first samples (the lowest `sample`); a question without a sample
/// counts as not answered, and so does a text without a number: neither is ever a 0.
/// \returns n, accuracy and answer_rate with Wilson's 95 % intervals, and what more samples of a question
///     report; of samples and gold answers path and SHA-256
/// \throws Error{kBadInput} naming file and line: no JSON, a missing key, a gold answer without a number, two
///     gold answers to one question, a prompt that the gold file lacks, the same sample twice; Error{kIo}
nlohmann::ordered_json RunAnswers(const AnswersJobOptions& options);

}  // namespace trainwright
