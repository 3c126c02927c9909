/// Which generated samples are kept for training: rejection sampling.
/// \source Yuan et al. 2023, "Scaling Relationship on Learning Mathematical Reasoning with Large Language
/// Models", arXiv:2308.01825, section 3.3 (correct and distinct samples augment the training set)
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/score/answer.h"
#include "lib/score/gold_answers.h"

namespace trainwright {

enum class KeepRule : uint8_t {
  kAnswered,  ///< it answers something; with tags, both are there
  kValid,     ///< and IsValidAnswer
  kStrict,    ///< and IsStrictlyValidAnswer
};
/// Of a prompt's samples that pass.
enum class KeepWhich : uint8_t { kFirst, kAll, kDistinct };

struct SampleFilterOptions {
  KeepRule rule = KeepRule::kAnswered;
  KeepWhich which = KeepWhich::kFirst;
  AnswerFormat format = AnswerFormat::kAuto;
  std::string gold;  ///< file of gold answers; empty for kAnswered
};

class SampleFilter {
 public:
  /// \throws Error{kUsage} when the rule needs gold answers and none are named, or the other way round;
  /// what ReadGoldAnswers throws
  explicit SampleFilter(const SampleFilterOptions& options);

  /// Whether to keep a sample. Those of one prompt come one after another.
  /// \param prompt_number tells prompts apart
  /// \throws Error{kBadInput} on a prompt that has no gold answer
  bool Keep(uint64_t prompt_number, const std::string& prompt, const std::string& text);

  struct Counts {
    uint64_t samples = 0, passed = 0, kept = 0;
    uint64_t prompts = 0, prompts_with_kept = 0;
    uint64_t distinct = 0;  ///< texts that passed, white space and repetitions of a prompt apart
    std::vector<uint64_t> prompts_by_passed;  ///< [k] prompts of which k samples passed
  };
  /// Of all samples so far.
  Counts counts() const;
  /// SHA-256 of the file of gold answers; empty without one.
  const std::string& gold_sha256() const { return gold_sha256_; }

 private:
  bool Passes(const std::string& prompt, const std::string& text) const;
  void CountPrompt(Counts* counts) const;

  SampleFilterOptions options_;
  GoldAnswers gold_;
  std::string gold_sha256_;
  Counts counts_;  // of all prompts but the present one
  std::optional<uint64_t> prompt_number_;
  uint64_t passed_ = 0, kept_ = 0;  // of the present prompt
  std::set<std::string> texts_;     // that passed, of the present prompt
};

}  // namespace trainwright
