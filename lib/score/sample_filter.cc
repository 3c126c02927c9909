#include "lib/score/sample_filter.h"

#include <cmath>
#include <sstream>

#include "lib/base/error.h"

namespace trainwright {
namespace {

/// Words with one space between them.
std::string Squeezed(const std::string& text) {
  std::istringstream words(text);
  std::string squeezed;
  for (std::string word; words >> word;) squeezed += (squeezed.empty() ? "" : " ") + word;
  return squeezed;
}

/// A text that opens the tag closes it: one that was cut is no answer to learn from.
bool IsComplete(const std::string& text, AnswerFormat format) {
  const size_t open = text.find("<answer>");
  if (open == std::string::npos) return format != AnswerFormat::kTag;
  return text.find("</answer>", open) != std::string::npos;
}

}  // namespace

SampleFilter::SampleFilter(const SampleFilterOptions& options) : options_(options) {
  const bool compares = options.rule != KeepRule::kAnswered;
  if (compares && options.gold.empty()) {
    throw Error(ErrorCode::kUsage, "--keep-if", "compares with gold answers, and none are named", "",
                "name their file with --gold");
  }
  if (!compares && !options.gold.empty()) {
    throw Error(ErrorCode::kUsage, "--gold", "is of no use to --keep-if answered", "",
                "valid and strict compare with gold answers");
  }
  if (compares) gold_ = ReadGoldAnswers(options.gold, &gold_sha256_);
}

bool SampleFilter::Passes(const std::string& prompt, const std::string& text) const {
  const double answer = ParseAnswer(text, options_.format);
  if (options_.rule == KeepRule::kAnswered) return std::isfinite(answer) && IsComplete(text, options_.format);
  const auto gold = gold_.find(TrimmedPrompt(prompt));
  if (gold == gold_.end()) {
    throw Error(ErrorCode::kBadInput, options_.gold,
                "has no answer to the prompt \"" + TrimmedPrompt(prompt) + "\"");
  }
  if (!std::isfinite(answer) || !IsComplete(text, options_.format)) return false;
  return options_.rule == KeepRule::kStrict ? IsStrictlyValidAnswer(answer, gold->second)
                                            : IsValidAnswer(answer, gold->second);
}

bool SampleFilter::Keep(uint64_t prompt_number, const std::string& prompt, const std::string& text) {
  if (prompt_number_ != prompt_number) {
    CountPrompt(&counts_);
    prompt_number_ = prompt_number;
    passed_ = kept_ = 0;
    texts_.clear();
  }
  ++counts_.samples;
  if (!Passes(prompt, text)) return false;
  ++passed_;
  const bool is_new = texts_.insert(Squeezed(text)).second;
  const bool keep = options_.which == KeepWhich::kAll ||
                    (options_.which == KeepWhich::kFirst && kept_ == 0) ||
                    (options_.which == KeepWhich::kDistinct && is_new);
  if (keep) ++kept_;
  return keep;
}

void SampleFilter::CountPrompt(Counts* counts) const {
  if (!prompt_number_) return;
  ++counts->prompts;
  counts->passed += passed_;
  counts->kept += kept_;
  counts->prompts_with_kept += kept_ > 0 ? 1 : 0;
  counts->distinct += texts_.size();
  if (counts->prompts_by_passed.size() <= passed_) counts->prompts_by_passed.resize(passed_ + 1);
  ++counts->prompts_by_passed[passed_];
}

SampleFilter::Counts SampleFilter::counts() const {
  Counts counts = counts_;
  CountPrompt(&counts);
  return counts;
}

}  // namespace trainwright
