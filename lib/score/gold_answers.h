/// The answers that samples are scored against. Only scoring and rejection read them.
#pragma once

#include <string>
#include <unordered_map>

namespace trainwright {

/// By question, white space at both ends apart.
using GoldAnswers = std::unordered_map<std::string, double>;

/// A question as in GoldAnswers.
std::string TrimmedPrompt(const std::string& prompt);

/// JSON lines {"prompt" or "question", "gold" or "answer"}: a number, or text that holds one.
/// \throws Error{kBadInput} naming the line: no JSON, a missing key, an answer without a number, two answers
/// to one question; on a file without answers; Error{kIo}
/// \param sha256 where not null, gets that of the bytes read, in hexadecimal
GoldAnswers ReadGoldAnswers(const std::string& path, std::string* sha256 = nullptr);

}  // namespace trainwright
