/// Rank 1 of 2, whose rank 0 is played by the test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "lib/dist/world.h"

namespace trainwright::test {

/// When a run's ranks agree on something.
enum class Moment {
  kStart,       ///< before the first step: work that the writer alone does, the step that all go on from
  kBeforeStep,  ///< signal, time to save, early stop
  /// WorkEnd of the passes, whether a number is not finite, where the loaders stand (two words, which rank 0
  /// answers as this rank does), the wait of each rank
  kAfterPasses,
  kAfterStep,  ///< signal, time limit, watchdog
  kOtherwise,  ///< WorkEnd of an evaluation; at the end, signal
};

class RankOne final : public World {
 public:
  /// What rank 0 answers; what it leaves out is 0.
  /// \param step that is under way; 0 before the first
  using Answers = std::function<std::vector<int64_t>(Moment moment, int64_t step)>;
  explicit RankOne(Answers rank_zero) : rank_zero_(std::move(rank_zero)) {}
  int64_t rank() const override { return 1; }
  int64_t size() const override { return 2; }
  /// Rank 0 has counted nothing. What the ranks tell each other, each between the zeros of the other
  /// (GatherWords), it tells as this rank does.
  void Reduce(std::vector<int64_t>* counts) override {
    const auto own = counts->begin() + static_cast<ptrdiff_t>(counts->size() / 2);
    const bool told = std::all_of(counts->begin(), own, [](int64_t count) { return count == 0; });
    if (told && counts->size() % 2 == 0) std::copy(own, counts->end(), counts->begin());
  }
  std::vector<int64_t> Agree(const std::vector<int64_t>& answers) override {
    const Moment moment = MomentOf(answers.size());
    if (moment == Moment::kBeforeStep) ++steps_;
    std::vector<int64_t> agreed = rank_zero_(moment, steps_);
    agreed.resize(answers.size());
    if (moment == Moment::kAfterPasses) std::copy_n(answers.begin() + kPlaces, 2, agreed.begin() + kPlaces);
    for (size_t i = 0; i < answers.size(); ++i) agreed[i] = std::max(agreed[i], answers[i]);
    return agreed;
  }
  /// That it was asked about.
  int64_t steps() const { return steps_; }

 private:
  /// By how many questions are asked.
  Moment MomentOf(size_t questions) {
    if (questions == 1) return Moment::kOtherwise;
    if (questions == 2) return Moment::kStart;
    if (questions == kPlaces + 2 + static_cast<size_t>(size())) return Moment::kAfterPasses;
    in_step_ = !in_step_;
    return in_step_ ? Moment::kBeforeStep : Moment::kAfterStep;
  }

  static constexpr size_t kPlaces = 2;  ///< what is asked after the passes before where the loaders stand

  Answers rank_zero_;
  int64_t steps_ = 0;
  bool in_step_ = false;
};

}  // namespace trainwright::test
