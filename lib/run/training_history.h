/// How a run has gone so far, for metadata.json: the last losses and learning rates, the best of them, mean
/// and spread, evaluations. A function of the run alone: a run that is resumed takes it over from its
/// checkpoint and goes on as if it had not stopped. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace trainwright {

class TrainingHistory {
 public:
  static constexpr size_t kMostKept = 100;  ///< losses and learning rates

  /// \param evaluation_data names what the run is evaluated on: losses of other data are not compared with
  ///     its losses. "": nothing
  /// \param eval_every steps between the evaluations that count for StopsEarly, which may be others after
  ///     Restore; 0: none counts
  explicit TrainingHistory(std::string evaluation_data = "", int64_t eval_every = 0)
      : evaluation_data_(std::move(evaluation_data)), eval_every_(eval_every) {}

  /// \param step rising
  /// \param loss_nats finite
  void AddStep(int64_t step, double loss_nats, double lr);
  /// \param loss_nats no number: no better than any
  void AddEvaluation(int64_t step, double loss_nats);
  /// The evaluation after this step is left to the process that goes on from its checkpoint.
  void LeaveEvaluation(int64_t step) { left_step_ = step; }

  /// The fields current_loss, best_loss, loss_history, learning_rates, validation_metrics and history_state.
  /// \param step the checkpoint's
  nlohmann::ordered_json Encode(int64_t step) const;
  /// Takes over what Encode wrote into a checkpoint's metadata; those of older versions leave it empty. Of
  /// evaluations, those of this history's data: see compares_anew.
  void Restore(const nlohmann::json& metadata);
  /// Of a branch, once its parent's metadata is restored: evaluations from the parent's step on are compared
  /// with each other alone, and that after exactly this step, where it was made, is the first of them.
  void CompareFrom(int64_t step);

  double mean_loss_nats() const { return mean_; }
  double loss_deviation_nats() const;  ///< standard deviation of all losses; 0 of one
  std::optional<double> best_loss_nats() const { return best_loss_; }
  std::optional<double> last_loss_nats() const;
  /// From the best evaluation to the last one, in steps; 0 before the first.
  int64_t steps_since_best_evaluation() const {
    return best_evaluation_ ? evaluation_step_ - best_evaluation_step_ : 0;
  }
  int64_t best_evaluation_step() const { return best_evaluation_step_; }  ///< 0 before the first
  /// Whether --early-stop ends the run: this many consecutive evaluations of those that count were no better
  /// than the best before them. A function of the run's evaluations, so a resumed run ends there, too.
  bool StopsEarly(std::optional<int64_t> evaluations) const {
    return evaluations && evaluations_since_best_ >= *evaluations;
  }
  bool has_evaluations() const { return best_evaluation_.has_value(); }
  /// Whether what was restored had been evaluated on other data, and nothing since.
  bool compares_anew() const { return compares_anew_ && !has_evaluations(); }
  /// Whether LeaveEvaluation was called for exactly this step, and no evaluation came since.
  bool evaluation_is_left(int64_t step) const { return left_step_ == step; }
  /// Of the evaluation after exactly this step.
  std::optional<double> evaluation_nats(int64_t step) const;

 private:
  bool improving() const;

  std::deque<double> losses_, learning_rates_;
  std::optional<double> best_loss_;
  int64_t best_step_ = 0;
  int64_t count_ = 0;  // of all losses: Welford's sums
  double mean_ = 0, squares_ = 0;
  std::optional<double> evaluation_, best_evaluation_;
  int64_t evaluation_step_ = 0, best_evaluation_step_ = 0;
  int64_t evaluations_since_best_ = 0;  // of those that count
  std::optional<int64_t> left_step_;
  std::string evaluation_data_;
  int64_t eval_every_;
  bool compares_anew_ = false;
};

}  // namespace trainwright
